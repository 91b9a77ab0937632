// The names of objects in the bucket and of files in the local directory of a BucketSegmentStore
// (docs/format.md). Only the functions of this file make and parse these names.
//
//   segments/XX/IIIIIIII-GGGGGGGGGGGGGGGG                    key of a content; XX: low byte of the
//   id DIRECTORY/files/IIIIIIII-GGGGGGGGGGGGGGGG-SSSSSSSS.put   a content that waits for its upload
//   DIRECTORY/files/IIIIIIII-GGGGGGGGGGGGGGGG-SSSSSSSS.obj   an image of an object, maybe
//   incomplete DIRECTORY/removed/IIIIIIII-GGGGGGGGGGGGGGGG-PPPPPPPPPPPPPPPP   a tombstone
//
// I: id, G: generation, S: size of the segment, P: position of the commit (commit_gate.h), all in
// lower-case hex digits.
//
// Thread-safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "store/bucket/segment_content.h"

namespace siltfs {

inline constexpr std::string_view kSegmentKeyPrefix = "segments/";

std::string SegmentObjectKey(const ContentId& id);
std::optional<ContentId> ParseSegmentObjectKey(std::string_view key);

// The part of the keys of a segment that all its contents share, without the "-" behind it.
std::string SegmentObjectStem(SegmentId id);
// The segment whose SegmentObjectStem ends with this last part of a name.
std::optional<SegmentId> ParseSegmentStem(std::string_view last_part);

std::string FilesDirectory(const std::string& directory);
std::string RemovedDirectory(const std::string& directory);

enum class LocalFileKind : uint8_t { kWaiting, kImage };

struct LocalFileName {
  SegmentContent content;
  LocalFileKind kind = LocalFileKind::kWaiting;
};

std::string LocalFilePath(const std::string& directory, const SegmentContent& content,
                          LocalFileKind kind);
std::optional<LocalFileName> ParseLocalFileName(std::string_view name);

// Says that the segment was removed: its contents of this and of lower generations.
struct Tombstone {
  ContentId id;
  uint64_t position = 0;

  auto operator<=>(const Tombstone&) const = default;
};

std::string TombstonePath(const std::string& directory, const Tombstone& tombstone);
std::optional<Tombstone> ParseTombstoneName(std::string_view name);

}  // namespace siltfs
