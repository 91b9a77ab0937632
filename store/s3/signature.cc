#include "store/s3/signature.h"

#include <fmt/format.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <chrono>

#include "store/s3/sha256.h"

namespace siltfs {
namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";

bool IsUnreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

// "host;range;x-amz-date". The headers must be sorted.
std::string SignedHeaders(const NamedValues& headers) {
  std::string names;
  for (const auto& [name, value] : headers) names += (names.empty() ? "" : ";") + name;
  return names;
}

std::string CanonicalRequest(const SignableRequest& request, const NamedValues& sorted) {
  std::string text = fmt::format("{}\n{}\n{}\n", request.method, request.path, request.query);
  for (const auto& [name, value] : sorted) text += fmt::format("{}:{}\n", name, value);
  return text + fmt::format("\n{}\n{}", SignedHeaders(sorted), request.payload_sha256);
}

Sha256Digest SigningKey(const Credentials& credentials, std::string_view day,
                        std::string_view region) {
  std::string secret = "AWS4" + credentials.secret;
  Sha256Digest key = HmacSha256(AsBytes(secret), day);
  WipeText(secret);
  key = HmacSha256(key, region);
  key = HmacSha256(key, "s3");
  return HmacSha256(key, "aws4_request");
}

}  // namespace

std::string EncodeUri(std::string_view text, bool keep_slashes) {
  std::string encoded;
  for (const char c : text) {
    if (IsUnreserved(c) || (keep_slashes && c == '/')) {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

std::string CanonicalQuery(NamedValues query) {
  for (auto& [name, value] : query) {
    name = EncodeUri(name, false);
    value = EncodeUri(value, false);
  }
  std::ranges::sort(query);
  std::string text;
  for (const auto& [name, value] : query) {
    text += fmt::format("{}{}={}", text.empty() ? "" : "&", name, value);
  }
  return text;
}

std::string SignatureDate(int64_t now) {
  using namespace std::chrono;
  const sys_seconds time(floor<seconds>(nanoseconds(now)));
  const sys_days day = floor<days>(time);
  const year_month_day date(day);
  const hh_mm_ss clock(time - day);
  return fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count());
}

std::string Authorization(const SignableRequest& request, const Credentials& credentials,
                          std::string_view region, std::string_view date) {
  NamedValues headers = request.headers;
  std::ranges::sort(headers);
  const std::string_view day = date.substr(0, 8);
  const std::string scope = fmt::format("{}/{}/s3/aws4_request", day, region);
  const std::string to_sign =
      fmt::format("{}\n{}\n{}\n{}", kAlgorithm, date, scope,
                  HexOf(Sha256Of(AsBytes(CanonicalRequest(request, headers)))));
  Sha256Digest key = SigningKey(credentials, day, region);
  const std::string signature = HexOf(HmacSha256(key, to_sign));
  OPENSSL_cleanse(key.data(), key.size());
  return fmt::format("{} Credential={}/{},SignedHeaders={},Signature={}", kAlgorithm,
                     credentials.key_id, scope, SignedHeaders(headers), signature);
}

}  // namespace siltfs
