#include "store/s3/http_exchange.h"

#include <algorithm>
#include <cctype>

namespace siltfs {
namespace {

constexpr size_t kMaxHeaderBytes = 64 << 10;
constexpr size_t kMaxErrorBodyBytes = 64 << 10;
constexpr long kTransferBufferBytes = 256 << 10;

bool SucceedAll(std::initializer_list<CURLcode> codes) {
  return std::ranges::all_of(codes, [](CURLcode code) { return code == CURLE_OK; });
}

long MillisecondsOf(std::chrono::nanoseconds time) {
  const auto whole = std::chrono::ceil<std::chrono::milliseconds>(time).count();
  return static_cast<long>(std::clamp<int64_t>(whole, 1, 1 << 30));
}

}  // namespace

std::string_view HttpReply::Header(std::string_view name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string_view() : std::string_view(found->second);
}

HttpClient::Exchange::~Exchange() { curl_slist_free_all(headers_); }

bool HttpClient::Exchange::Prepare(CURL* easy, const Options& options) {
  for (const auto& [name, value] : request_.headers) {
    const std::string line = name + ":" + (value.empty() ? "" : " " + value);
    curl_slist* const longer = curl_slist_append(headers_, line.c_str());
    if (longer == nullptr) return false;
    headers_ = longer;
  }
  const auto set = [easy](CURLoption option, auto value) {
    return curl_easy_setopt(easy, option, value);
  };
  const bool general = SucceedAll({
      set(CURLOPT_URL, request_.url.c_str()),
      set(CURLOPT_PATH_AS_IS, 1L),
      set(CURLOPT_PROTOCOLS_STR, "http,https"),
      set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1)),
      set(CURLOPT_FOLLOWLOCATION, 0L),
      set(CURLOPT_NOSIGNAL, 1L),
      // The end of a request does not wait for a thread that resolves a name.
      set(CURLOPT_QUICK_EXIT, 1L),
      set(CURLOPT_NOPROGRESS, 1L),
      set(CURLOPT_TCP_KEEPALIVE, 1L),
      set(CURLOPT_BUFFERSIZE, kTransferBufferBytes),
      set(CURLOPT_USERAGENT, "siltfs"),
      set(CURLOPT_FRESH_CONNECT, request_.new_connection ? 1L : 0L),
      set(CURLOPT_SSL_VERIFYPEER, 1L),
      set(CURLOPT_SSL_VERIFYHOST, 2L),
      set(CURLOPT_CONNECTTIMEOUT_MS, MillisecondsOf(options.connect_timeout)),
      set(CURLOPT_HTTPHEADER, headers_),
      set(CURLOPT_ERRORBUFFER, error_text_),
      set(CURLOPT_HEADERFUNCTION, OnHeader),
      set(CURLOPT_HEADERDATA, static_cast<void*>(this)),
      set(CURLOPT_WRITEFUNCTION, OnBody),
      set(CURLOPT_WRITEDATA, static_cast<void*>(this)),
  });
  if (!general) return false;
  if (!options.ca_file.empty() && set(CURLOPT_CAINFO, options.ca_file.c_str()) != CURLE_OK) {
    return false;
  }
  if (request_.method == "PUT") return PrepareBody(easy);
  if (request_.method == "HEAD") return set(CURLOPT_NOBODY, 1L) == CURLE_OK;
  return set(CURLOPT_CUSTOMREQUEST, request_.method.c_str()) == CURLE_OK;
}

bool HttpClient::Exchange::PrepareBody(CURL* easy) {
  const auto set = [easy](CURLoption option, auto value) {
    return curl_easy_setopt(easy, option, value);
  };
  return SucceedAll({
      set(CURLOPT_UPLOAD, 1L),
      set(CURLOPT_UPLOAD_BUFFERSIZE, kTransferBufferBytes),
      set(CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request_.body_size)),
      set(CURLOPT_READFUNCTION, OnRead),
      set(CURLOPT_READDATA, static_cast<void*>(this)),
      set(CURLOPT_SEEKFUNCTION, OnSeek),
      set(CURLOPT_SEEKDATA, static_cast<void*>(this)),
  });
}

void HttpClient::Exchange::Fail(HttpFailure failure, std::string cause) {
  if (result_.failure != HttpFailure::kNone) return;
  result_.failure = failure;
  result_.cause = std::move(cause);
}

void HttpClient::Exchange::Finish(CURLcode code) {
  if (code == CURLE_OK) return;
  const char* const text = error_text_[0] != '\0' ? error_text_ : curl_easy_strerror(code);
  if (refused_) return Fail(HttpFailure::kRefused, "the reply was refused");
  switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
      return Fail(HttpFailure::kTimeout, "no connection was made in time");
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
      return Fail(HttpFailure::kUntrusted, text);
    case CURLE_URL_MALFORMAT:
    case CURLE_NOT_BUILT_IN:
      return Fail(HttpFailure::kUnusable, text);
    default:
      return Fail(HttpFailure::kUnreachable, text);
  }
}

size_t HttpClient::Exchange::OnHeader(char* text, size_t size, size_t count, void* exchange) {
  auto& self = *static_cast<Exchange*>(exchange);
  const size_t bytes = size * count;
  self.transferred_ += bytes;
  self.header_bytes_ += bytes;
  if (self.header_bytes_ > kMaxHeaderBytes) return 0;
  self.TakeHeader({text, bytes});
  return bytes;
}

void HttpClient::Exchange::TakeHeader(std::string_view line) {
  while (!line.empty() && (line.back() == '\r' || line.back() == '\n')) line.remove_suffix(1);
  HttpReply& reply = result_.reply;
  if (line.starts_with("HTTP/")) {
    // Each interim reply ("100 Continue") has headers of its own.
    reply.headers.clear();
    reply.status = 0;
    const size_t space = line.find(' ');
    if (space != std::string_view::npos && line.size() >= space + 4) {
      for (const char c : line.substr(space + 1, 3)) {
        if (c < '0' || c > '9') return;
        reply.status = reply.status * 10 + (c - '0');
      }
    }
    return;
  }
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return;
  std::string name(line.substr(0, colon));
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  const size_t begin = line.find_first_not_of(" \t", colon + 1);
  const size_t end = line.find_last_not_of(" \t");
  reply.headers[std::move(name)] =
      begin == std::string_view::npos ? "" : line.substr(begin, end - begin + 1);
}

size_t HttpClient::Exchange::OnBody(char* bytes, size_t size, size_t count, void* exchange) {
  auto& self = *static_cast<Exchange*>(exchange);
  const ByteView piece(reinterpret_cast<const uint8_t*>(bytes), size * count);
  self.transferred_ += piece.size();
  self.result_.reply.received_bytes += piece.size();
  if (self.TakeBody(piece)) return piece.size();
  self.refused_ = true;
  return piece.empty() ? 1 : 0;  // any other number than the size of the piece
}

bool HttpClient::Exchange::TakeBody(ByteView piece) {
  HttpReply& reply = result_.reply;
  if (reply.Successful()) return !sink_ || sink_(reply, piece);
  const size_t room = kMaxErrorBodyBytes - reply.error_body.size();
  reply.error_body += AsText(piece.first(std::min(room, piece.size())));
  return true;
}

size_t HttpClient::Exchange::OnRead(char* bytes, size_t size, size_t count, void* exchange) {
  auto& self = *static_cast<Exchange*>(exchange);
  return self.GiveBody({reinterpret_cast<uint8_t*>(bytes), size * count});
}

size_t HttpClient::Exchange::GiveBody(MutableByteView out) {
  const uint64_t left = request_.body_size - offset_;
  if (left == 0) return 0;
  const MutableByteView wanted =
      out.first(static_cast<size_t>(std::min<uint64_t>(left, out.size())));
  auto got = request_.body->Read(offset_, wanted);
  if (got.ok() && *got != wanted.size()) {
    got = Status(StatusCode::kIoError, "has become shorter while it was put in a bucket")
              .At(request_.body->path());
  }
  if (!got.ok()) {
    Fail(HttpFailure::kSource, got.status().ToString());
    result_.source_error = std::move(got).status();
    return CURL_READFUNC_ABORT;
  }
  offset_ += *got;
  transferred_ += *got;
  result_.sent_bytes += *got;
  return *got;
}

int HttpClient::Exchange::OnSeek(void* exchange, curl_off_t offset, int origin) {
  auto& self = *static_cast<Exchange*>(exchange);
  if (origin != SEEK_SET || offset < 0 || static_cast<uint64_t>(offset) > self.request_.body_size) {
    return CURL_SEEKFUNC_FAIL;
  }
  self.result_.repeated = self.result_.repeated || self.offset_ > 0;
  self.offset_ = static_cast<uint64_t>(offset);
  return CURL_SEEKFUNC_OK;
}

}  // namespace siltfs
