#include "tests/crash/injection.h"

#include <map>
#include <vector>

namespace siltfs::testing {
namespace {

using Kind = SimRecord::Kind;

enum class FileKind { kSegment, kMetadataLog, kOther };

FileKind KindOf(std::string_view path) {
  if (path.find("/segments") != path.npos) return FileKind::kSegment;
  if (path.find("/meta/") != path.npos && path.ends_with(".log")) return FileKind::kMetadataLog;
  return FileKind::kOther;
}

// Determines which kind of file a record belongs to. Files are numbered in the order of their
// creation.
class FileKinds {
 public:
  FileKind Of(const SimRecord& record) {
    const bool creates = record.kind == Kind::kCreateFile || record.kind == Kind::kCreateDirectory;
    if (creates) kinds_[next_++] = KindOf(record.path);
    if (creates || record.kind == Kind::kSyncDirectory) return KindOf(record.path);
    const auto found = kinds_.find(record.file);
    return found == kinds_.end() ? FileKind::kOther : found->second;
  }

 private:
  uint64_t next_ = 1;
  std::map<uint64_t, FileKind> kinds_;
};

}  // namespace

std::optional<Injection> ParseInjection(std::string_view name) {
  if (name == "skip-segment-sync") return Injection::kSkipSegmentSync;
  if (name == "swap-commit-order") return Injection::kSwapCommitOrder;
  if (name == "drop-directory-sync") return Injection::kDropDirectorySync;
  return std::nullopt;
}

SimTrace Inject(SimTrace trace, Injection injection, size_t keep) {
  if (injection == Injection::kNone) return trace;
  FileKinds kinds;
  SimTrace result;
  std::vector<SimRecord> late;
  for (size_t i = 0; i < trace.size(); ++i) {
    SimRecord& record = trace[i];
    const FileKind kind = kinds.Of(record);
    const bool syncs_file = record.kind == Kind::kSync;
    const bool syncs_directory = record.kind == Kind::kSyncDirectory;
    const bool syncs_segment = kind == FileKind::kSegment && (syncs_file || syncs_directory);
    const bool broken =
        i >= keep && (injection == Injection::kDropDirectorySync ? syncs_directory : syncs_segment);
    if (!broken) {
      const bool metadata_synced = syncs_file && kind == FileKind::kMetadataLog;
      result.push_back(std::move(record));
      if (!metadata_synced) continue;
      for (SimRecord& sync : late) result.push_back(std::move(sync));
      late.clear();
    } else if (injection == Injection::kSwapCommitOrder) {
      late.push_back(std::move(record));
    }
  }
  for (SimRecord& sync : late) result.push_back(std::move(sync));
  return result;
}

}  // namespace siltfs::testing
