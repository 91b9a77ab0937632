#include "store/s3/s3_xml.h"

#include <expat.h>

#include <algorithm>
#include <functional>
#include <memory>

#include "store/s3/object_headers.h"

namespace siltfs {
namespace {

constexpr size_t kMaxDepth = 8;
constexpr size_t kMaxTextBytes = 16 << 10;
constexpr size_t kMaxMessageCharacters = 200;
constexpr size_t kMaxListedObjects = 1000;

// Walks a document, and calls a function for the text of each element. The function gets the path
// of the element ("ListBucketResult/Contents/Key"); for an element with children, its text is
// empty. It returns false to refuse the document.
class XmlWalk {
 public:
  using OnElement = std::function<bool(const std::string& path, std::string& text)>;

  // Empty if the document was read to its end, or else the cause.
  static std::string Run(std::string_view document, const OnElement& on_element) {
    const std::unique_ptr<std::remove_pointer_t<XML_Parser>, void (*)(XML_Parser)> parser(
        XML_ParserCreate("UTF-8"), XML_ParserFree);
    if (parser == nullptr) return "there is not enough memory";
    XmlWalk walk(parser.get(), on_element);
    XML_SetUserData(parser.get(), &walk);
    XML_SetElementHandler(parser.get(), Begin, End);
    XML_SetCharacterDataHandler(parser.get(), Text);
    XML_SetStartDoctypeDeclHandler(parser.get(), Doctype);
    const XML_Status status =
        XML_Parse(parser.get(), document.data(), static_cast<int>(document.size()), XML_TRUE);
    if (!walk.refusal_.empty()) return walk.refusal_;
    if (status != XML_STATUS_OK) return XML_ErrorString(XML_GetErrorCode(parser.get()));
    return "";
  }

 private:
  XmlWalk(XML_Parser parser, const OnElement& on_element)
      : parser_(parser), on_element_(on_element) {}

  void Refuse(const char* why) {
    if (refusal_.empty()) refusal_ = why;
    XML_StopParser(parser_, XML_FALSE);
  }

  static void Begin(void* data, const char* name, const char** /*attributes*/) {
    auto& walk = *static_cast<XmlWalk*>(data);
    walk.ends_.push_back(walk.path_.size());
    if (walk.ends_.size() > kMaxDepth) return walk.Refuse("its elements are nested too deep");
    if (!walk.path_.empty()) walk.path_ += '/';
    walk.path_ += name;
    walk.text_.clear();
    if (walk.path_.size() > kMaxTextBytes) walk.Refuse("an element has a long name");
  }

  static void End(void* data, const char* /*name*/) {
    auto& walk = *static_cast<XmlWalk*>(data);
    if (!walk.refusal_.empty()) return;
    if (!walk.on_element_(walk.path_, walk.text_)) walk.Refuse("an element has a wrong value");
    walk.path_.resize(walk.ends_.back());
    walk.ends_.pop_back();
    walk.text_.clear();
  }

  static void Text(void* data, const char* text, int size) {
    auto& walk = *static_cast<XmlWalk*>(data);
    if (walk.text_.size() + static_cast<size_t>(size) > kMaxTextBytes) {
      return walk.Refuse("an element has a long text");
    }
    walk.text_.append(text, static_cast<size_t>(size));
  }

  static void Doctype(void* data, const char*, const char*, const char*, int) {
    static_cast<XmlWalk*>(data)->Refuse("it has a DOCTYPE");
  }

  const XML_Parser parser_;
  const OnElement& on_element_;
  std::string path_;
  std::vector<size_t> ends_;  // for each open element, the length of its parent's path
  std::string text_;
  std::string refusal_;
};

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// Decodes a key of a listing with encoding-type=url.
std::optional<std::string> DecodeUrl(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+') {
      decoded += ' ';
    } else if (text[i] != '%') {
      decoded += text[i];
    } else {
      if (text.size() - i < 3) return {};
      const int high = HexDigit(text[i + 1]);
      const int low = HexDigit(text[i + 2]);
      if (high < 0 || low < 0) return {};
      decoded += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return decoded;
}

// Takes the elements of a ListBucketResult one by one.
class ListingReader {
 public:
  bool Take(const std::string& path, std::string& text) {
    constexpr std::string_view kRoot = "ListBucketResult";
    if (!path.starts_with(kRoot)) return false;
    const std::string_view rest = std::string_view(path).substr(kRoot.size());
    if (rest.empty()) return ended_ = true;
    if (rest == "/IsTruncated") return TakeTruncated(text);
    if (rest == "/NextContinuationToken") listing_.next_token = std::move(text);
    if (rest == "/EncodingType") encoded_ = text == "url";
    if (rest == "/Contents/Key") return TakeOnce(key_, text);
    if (rest == "/Contents/ETag") return TakeOnce(etag_, text);
    if (rest == "/Contents/Size") return TakeOnce(size_, text);
    if (rest == "/Contents") return EndObject();
    return true;
  }

  std::string Finish() {
    if (!ended_) return "it is no listing";
    if (!has_truncated_) return "it does not say whether it is complete";
    if (listing_.truncated && listing_.next_token.empty()) return "its continuation is missing";
    if (!encoded_) return "";
    for (S3ListedObject& object : listing_.objects) {
      auto key = DecodeUrl(object.key);
      if (!key || key->empty()) return "a key is not encoded as it should be";
      object.key = std::move(*key);
    }
    return "";
  }

  S3Listing& listing() { return listing_; }

 private:
  static bool TakeOnce(std::optional<std::string>& field, std::string& text) {
    if (field) return false;
    field = std::move(text);
    return true;
  }

  bool TakeTruncated(std::string_view text) {
    if (has_truncated_ || (text != "true" && text != "false")) return false;
    has_truncated_ = true;
    listing_.truncated = text == "true";
    return true;
  }

  bool EndObject() {
    if (!key_ || !etag_ || !size_ || key_->empty()) return false;
    if (listing_.objects.size() == kMaxListedObjects) return false;
    const auto size = ParseDecimal(*size_);
    auto etag = ParseEtag(*etag_);
    if (!size || !etag) return false;
    listing_.objects.push_back({std::move(*key_), *size, std::move(*etag)});
    key_.reset();
    etag_.reset();
    size_.reset();
    return true;
  }

  S3Listing listing_;
  bool ended_ = false;
  bool has_truncated_ = false;
  bool encoded_ = false;
  std::optional<std::string> key_, etag_, size_;
};

bool IsAlphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

std::string Printable(std::string_view text) {
  std::string printable(text.substr(0, kMaxMessageCharacters));
  std::ranges::replace_if(
      printable, [](char c) { return c < 0x20 || c > 0x7E; }, '?');
  return printable;
}

}  // namespace

Result<S3Listing> ParseListing(std::string_view document) {
  ListingReader reader;
  std::string fault = document.size() > kMaxListingBytes
                          ? "it is too long"
                          : XmlWalk::Run(document, [&](const std::string& path, std::string& text) {
                              return reader.Take(path, text);
                            });
  if (fault.empty()) fault = reader.Finish();
  if (!fault.empty()) {
    return Status(StatusCode::kCorruption, "the service sent a malformed listing: " + fault);
  }
  return std::move(reader.listing());
}

std::optional<S3Error> ParseError(std::string_view document) {
  if (document.size() > kMaxErrorBytes) return {};
  S3Error error;
  const std::string fault = XmlWalk::Run(document, [&](const std::string& path, std::string& text) {
    if (path == "Error/Code") error.code = std::move(text);
    if (path == "Error/Message") error.message = Printable(text);
    if (path == "Error/Region") error.region = Printable(text);
    return true;
  });
  if (!fault.empty() || error.code.empty() || error.code.size() > 100 ||
      !std::ranges::all_of(error.code, IsAlphanumeric)) {
    return {};
  }
  return error;
}

}  // namespace siltfs
