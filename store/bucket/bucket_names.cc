#include "store/bucket/bucket_names.h"

#include <fmt/format.h>

#include "store/env/files.h"

namespace siltfs {
namespace {

constexpr std::string_view kWaitingSuffix = ".put";
constexpr std::string_view kImageSuffix = ".obj";

// Takes fields from the front of a name. After a failure, `ok` stays false.
class NameParser {
 public:
  explicit NameParser(std::string_view rest) : rest_(rest) {}

  uint64_t Hex(size_t digits) {
    const std::string_view text = rest_.substr(0, digits);
    ok_ = ok_ && text.size() == digits;
    rest_.remove_prefix(text.size());
    uint64_t value = 0;
    for (const char c : text) {
      const bool decimal = c >= '0' && c <= '9';
      if (!decimal && (c < 'a' || c > 'f')) ok_ = false;
      value = value << 4 | static_cast<uint64_t>(decimal ? c - '0' : c - 'a' + 10);
    }
    return value;
  }
  void Text(std::string_view text) {
    ok_ = ok_ && rest_.starts_with(text);
    if (ok_) rest_.remove_prefix(text.size());
  }
  ContentId Content() {
    ContentId id;
    id.segment = static_cast<SegmentId>(Hex(8));
    Text("-");
    id.generation = Hex(16);
    ok_ = ok_ && id.segment != kNoSegment;
    return id;
  }
  std::string_view rest() const { return rest_; }
  bool Done() const { return ok_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

std::string ContentName(const ContentId& id) {
  return fmt::format("{:08x}-{:016x}", id.segment, id.generation);
}

}  // namespace

std::string SegmentObjectStem(SegmentId id) {
  return fmt::format("{}{:02x}/{:08x}", kSegmentKeyPrefix, id & 0xff, id);
}

std::optional<SegmentId> ParseSegmentStem(std::string_view last_part) {
  NameParser parser(last_part);
  const auto id = static_cast<SegmentId>(parser.Hex(8));
  if (!parser.Done() || id == kNoSegment) return std::nullopt;
  return id;
}

std::string SegmentObjectKey(const ContentId& id) {
  return fmt::format("{}-{:016x}", SegmentObjectStem(id.segment), id.generation);
}

std::optional<ContentId> ParseSegmentObjectKey(std::string_view key) {
  NameParser parser(key);
  parser.Text(kSegmentKeyPrefix);
  const uint64_t part = parser.Hex(2);
  parser.Text("/");
  const ContentId id = parser.Content();
  if (!parser.Done() || part != (id.segment & 0xff)) return std::nullopt;
  return id;
}

std::string FilesDirectory(const std::string& directory) { return JoinPath(directory, "files"); }
std::string RemovedDirectory(const std::string& directory) {
  return JoinPath(directory, "removed");
}

std::string LocalFilePath(const std::string& directory, const SegmentContent& content,
                          LocalFileKind kind) {
  const std::string name =
      fmt::format("{}-{:08x}{}", ContentName(content.id), content.size,
                  kind == LocalFileKind::kWaiting ? kWaitingSuffix : kImageSuffix);
  return JoinPath(FilesDirectory(directory), name);
}

std::optional<LocalFileName> ParseLocalFileName(std::string_view name) {
  NameParser parser(name);
  LocalFileName parsed;
  parsed.content.id = parser.Content();
  parser.Text("-");
  parsed.content.size = static_cast<uint32_t>(parser.Hex(8));
  parsed.kind = parser.rest() == kImageSuffix ? LocalFileKind::kImage : LocalFileKind::kWaiting;
  parser.Text(parsed.kind == LocalFileKind::kImage ? kImageSuffix : kWaitingSuffix);
  if (!parser.Done()) return std::nullopt;
  return parsed;
}

std::string TombstonePath(const std::string& directory, const Tombstone& tombstone) {
  return JoinPath(RemovedDirectory(directory),
                  fmt::format("{}-{:016x}", ContentName(tombstone.id), tombstone.position));
}

std::optional<Tombstone> ParseTombstoneName(std::string_view name) {
  NameParser parser(name);
  Tombstone tombstone;
  tombstone.id = parser.Content();
  parser.Text("-");
  tombstone.position = parser.Hex(16);
  if (!parser.Done()) return std::nullopt;
  return tombstone;
}

}  // namespace siltfs
