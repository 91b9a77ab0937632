#include "store/s3/bucket_address.h"

#include <algorithm>
#include <charconv>

namespace siltfs {
namespace {

constexpr std::string_view kBucketScheme = "s3://";

Status BadAddress(std::string_view text, std::string cause) {
  // An address with "@" may contain a password.
  const bool secret = text.find('@') != std::string_view::npos;
  return Status(StatusCode::kInvalidArgument, std::move(cause))
      .At(secret ? std::string_view("the address") : text);
}

bool IsLowerOrDigit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool IsHostCharacter(char c) {
  return IsLowerOrDigit(c) || (c >= 'A' && c <= 'Z') || c == '.' || c == '-' || c == '_';
}
bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }

bool IsDottedNumbers(std::string_view name) {
  return std::ranges::count(name, '.') == 3 &&
         std::ranges::all_of(name, [](char c) { return c == '.' || (c >= '0' && c <= '9'); });
}

// Length of the UTF-8 sequence at the begin of `text`; 0 if there is no valid one.
size_t Utf8Length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xF0 && first <= 0xF4   ? 4
                        : first >= 0xE0 && first <= 0xEF ? 3
                        : first >= 0xC2 && first <= 0xDF ? 2
                                                         : 0;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, and numbers beyond U+10FFFF.
  if ((first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) > 0x9F) ||
      (first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) > 0x8F)) {
    return 0;
  }
  return length;
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

Status CheckBucketName(std::string_view url, std::string_view name) {
  if (name.empty()) return BadAddress(url, "names no bucket; write s3://NAME/PREFIX");
  if (name.size() < 3 || name.size() > 63) {
    return BadAddress(url, "the name of a bucket has 3 to 63 characters");
  }
  if (!std::ranges::all_of(name,
                           [](char c) { return IsLowerOrDigit(c) || c == '.' || c == '-'; })) {
    return BadAddress(url,
                      "the name of a bucket has only lower-case letters, digits, \".\" and \"-\"");
  }
  if (!IsLowerOrDigit(name.front()) || !IsLowerOrDigit(name.back())) {
    return BadAddress(url, "the name of a bucket begins and ends with a letter or digit");
  }
  if (name.find("..") != std::string_view::npos || IsDottedNumbers(name)) {
    return BadAddress(url, "the name of a bucket has no two dots in a row and is no IP address");
  }
  return Status::Ok();
}

Status CheckPrefix(std::string_view url, std::string_view prefix) {
  if (prefix.size() > kMaxBucketPrefixBytes) {
    return BadAddress(
        url, "the prefix has more than " + std::to_string(kMaxBucketPrefixBytes) + " bytes");
  }
  if (std::ranges::any_of(prefix, IsControl) || !IsUtf8(prefix)) {
    return Status(StatusCode::kInvalidArgument,
                  "the prefix of a bucket's address must be UTF-8 without control characters");
  }
  while (!prefix.empty()) {
    const size_t end = std::min(prefix.find('/'), prefix.size());
    const std::string_view part = prefix.substr(0, end);
    if (part.empty() || part == "." || part == "..") {
      return BadAddress(url, "no part of the prefix may be empty, \".\" or \"..\"");
    }
    prefix.remove_prefix(std::min(end + 1, prefix.size()));
  }
  return Status::Ok();
}

Status ParsePort(std::string_view url, std::string_view text, uint16_t& port) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port == 0 || text[0] == '0') {
    return BadAddress(url, "the port must be a number from 1 to 65535");
  }
  return Status::Ok();
}

bool IsIpv6(std::string_view address) {
  return address.size() >= 2 && std::ranges::count(address, ':') >= 2 &&
         std::ranges::count(address, ':') <= 7 && std::ranges::all_of(address, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') ||
                  c == ':' || c == '.';
         });
}

// Splits "HOST:PORT" and "[ADDRESS]:PORT".
Status ParseAuthority(std::string_view url, std::string_view authority, Endpoint& endpoint) {
  size_t host_end = authority.find(':');
  if (authority.starts_with('[')) {
    const size_t bracket = authority.find(']');
    if (bracket == std::string_view::npos || !IsIpv6(authority.substr(1, bracket - 1))) {
      return BadAddress(url, "an IPv6 address is written in brackets: http://[::1]:9000");
    }
    host_end = bracket + 1;
    if (host_end < authority.size() && authority[host_end] != ':') {
      return BadAddress(url, "only a colon and a port may follow an IPv6 address");
    }
    if (host_end == authority.size()) host_end = std::string_view::npos;
  } else if (std::ranges::count(authority, ':') > 1) {
    return BadAddress(url, "an IPv6 address is written in brackets: http://[::1]:9000");
  }
  endpoint.host = authority.substr(0, host_end);
  if (endpoint.host.empty()) {
    return BadAddress(url, "names no host; write https://HOST or http://HOST:PORT");
  }
  if (!endpoint.host.starts_with('[') &&
      (endpoint.host.size() > 253 || !std::ranges::all_of(endpoint.host, IsHostCharacter))) {
    return BadAddress(url, "the name of a host has only letters, digits, \".\", \"-\" and \"_\"");
  }
  if (host_end == std::string_view::npos) return Status::Ok();
  return ParsePort(url, authority.substr(host_end + 1), endpoint.port);
}

}  // namespace

std::string BucketAddress::ToUrl() const {
  return std::string(kBucketScheme) + bucket + (prefix.empty() ? "" : "/" + prefix);
}

std::string BucketAddress::KeyPrefix() const { return prefix.empty() ? "" : prefix + "/"; }

bool LooksLikeBucketUrl(std::string_view text) { return text.starts_with(kBucketScheme); }

Result<BucketAddress> ParseBucketUrl(std::string_view url) {
  if (!LooksLikeBucketUrl(url)) {
    return BadAddress(url, "is no address of a bucket; write s3://NAME/PREFIX");
  }
  std::string_view rest = url.substr(kBucketScheme.size());
  if (rest.substr(0, rest.find('/')).find('@') != std::string_view::npos) {
    return BadAddress(url, "contains \"@\"; credentials come from the environment or a file");
  }
  const size_t slash = std::min(rest.find('/'), rest.size());
  BucketAddress address;
  address.bucket = rest.substr(0, slash);
  SILTFS_RETURN_IF_ERROR(CheckBucketName(url, address.bucket));
  rest.remove_prefix(std::min(slash + 1, rest.size()));
  // Without this, "s3://NAME/a//" would be "a/", and its last part empty.
  if (rest.ends_with('/') && rest.size() > 1) rest.remove_suffix(1);
  SILTFS_RETURN_IF_ERROR(CheckPrefix(url, rest));
  if (rest.ends_with('/')) {
    return BadAddress(url, "no part of the prefix may be empty, \".\" or \"..\"");
  }
  address.prefix = rest;
  return address;
}

std::string Endpoint::Authority() const {
  const bool usual = port == 0 || port == (tls ? 443 : 80);
  return usual ? host : host + ":" + std::to_string(port);
}

std::string Endpoint::Origin() const { return (tls ? "https://" : "http://") + Authority(); }

Result<Endpoint> ParseEndpoint(std::string_view url) {
  Endpoint endpoint;
  std::string_view rest = url;
  if (rest.starts_with("https://")) {
    rest.remove_prefix(8);
  } else if (rest.starts_with("http://")) {
    endpoint.tls = false;
    rest.remove_prefix(7);
  } else {
    return BadAddress(url, "an endpoint begins with http:// or https://");
  }
  if (rest.find('@') != std::string_view::npos) {
    return BadAddress(url, "contains \"@\"; credentials come from the environment or a file");
  }
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.find_first_of("/?#") != std::string_view::npos) {
    return BadAddress(url, "nothing may follow the host and the port of an endpoint");
  }
  SILTFS_RETURN_IF_ERROR(ParseAuthority(url, rest, endpoint));
  return endpoint;
}

Endpoint AmazonEndpoint(std::string_view region) {
  return {.tls = true, .host = "s3." + std::string(region) + ".amazonaws.com", .port = 0};
}

}  // namespace siltfs
