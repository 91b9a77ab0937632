#include "store/s3/content_range.h"

#include <fmt/format.h>

#include <algorithm>

#include "store/s3/object_headers.h"

namespace siltfs {
namespace {

constexpr std::string_view kUnit = "bytes ";

std::string FaultOfEnd(const HttpReply& reply, const WantedRange& wanted) {
  const std::string_view range = reply.Header("content-range");
  constexpr std::string_view kUnsatisfied = "bytes */";
  if (!range.starts_with(kUnsatisfied)) return "";
  const auto total = ParseDecimal(range.substr(kUnsatisfied.size()));
  if (total && *total <= wanted.offset) return "";
  return "the service says that the range is behind the end of the object, but it is not";
}

}  // namespace

std::optional<ContentRange> ParseContentRange(std::string_view text) {
  if (!text.starts_with(kUnit)) return {};
  text.remove_prefix(kUnit.size());
  const size_t hyphen = text.find('-');
  const size_t slash = text.find('/');
  if (hyphen == std::string_view::npos || slash == std::string_view::npos || hyphen > slash) {
    return {};
  }
  const auto begin = ParseDecimal(text.substr(0, hyphen));
  const auto last = ParseDecimal(text.substr(hyphen + 1, slash - hyphen - 1));
  const auto total = ParseDecimal(text.substr(slash + 1));
  if (!begin || !last || !total || *begin > *last || *last >= *total) return {};
  return ContentRange{.begin = *begin, .end = *last + 1, .total = *total};
}

std::string FaultOfRange(const HttpReply& reply, const WantedRange& wanted, uint64_t received) {
  if (reply.status == 416) return FaultOfEnd(reply, wanted);
  const auto etag = ParseEtag(reply.Header("etag"));
  if (!etag) return "a range came without a usable ETag";
  if (!wanted.version.empty() && *etag != wanted.version) {
    return "a range of another version came than was asked for";
  }
  // The whole object, which a service may send if the range covers it.
  if (reply.status == 200 && wanted.offset == 0) {
    const auto length = ParseDecimal(reply.Header("content-length"));
    return length == received ? "" : "an object came without its length";
  }
  const auto range = ParseContentRange(reply.Header("content-range"));
  if (reply.status != 206 || !range) return "the whole object came instead of a range";
  const uint64_t end = std::min(wanted.offset + wanted.size, range->total);
  if (range->begin != wanted.offset || range->end != end) {
    return fmt::format("the range {}-{} came instead of {}-{}", range->begin, range->end,
                       wanted.offset, end);
  }
  if (received != end - wanted.offset) {
    return fmt::format("{} bytes came for a range of {}", received, end - wanted.offset);
  }
  return "";
}

}  // namespace siltfs
