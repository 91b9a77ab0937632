#include "store/segment/segment_source.h"

#include "store/env/files.h"
#include "store/segment/segment_files.h"
#include "store/segment/segment_footer.h"

namespace siltfs {
namespace {

// No segment is larger: a segment of the largest target size, its last block, and the footer.
constexpr uint64_t kMostSegmentBytes =
    uint64_t{kMaxSegmentTargetSize} + kMaxBlockHeadSize + kMaxBlockPlainBytes +
    uint64_t{kMaxSegmentChunks} * (kFooterChunkSize + kFooterBlockSize) + kSegmentTrailerSize;

}  // namespace

Result<std::unique_ptr<File>> SegmentSource::Open() const {
  return env.OpenFile(path, {.mode = OpenMode::kRead});
}

Result<std::string> SegmentSource::Read() const {
  return ReadWholeFile(env, path, kMostSegmentBytes);
}

Status SegmentSource::Remove() const {
  SILTFS_RETURN_IF_ERROR(env.RemoveFile(path));
  return env.SyncDirectory(path.substr(0, path.rfind('/')));
}

SegmentSource BuiltSegment(Env& env, const std::string& store, SegmentId id) {
  return {env, SegmentPath(store, id)};
}

SegmentSource BuiltReplacement(Env& env, const std::string& store, SegmentId id) {
  return {env, TemporarySegmentPath(store, id)};
}

}  // namespace siltfs
