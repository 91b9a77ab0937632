#include "fs/follow/following_file_system.h"

#include <type_traits>

#include "fs/interface/activity.h"
#include "fs/interface/stats.h"

namespace siltfs {
namespace {

Status ReadOnlyMount() {
  return {StatusCode::kReadOnly, "this mount follows a writer on another machine"};
}

template <typename Outcome>
const Status& StatusOf(const Outcome& outcome) {
  if constexpr (std::is_same_v<Outcome, Status>) {
    return outcome;
  } else {
    return outcome.status();
  }
}

class FollowedEntries final : public EntryStore {
 public:
  explicit FollowedEntries(FollowedStore& store) : store_(store) {}
  std::vector<Result<PutOutcome>> Put(std::span<const EntryImage> images) override {
    std::vector<Result<PutOutcome>> outcomes;
    for (size_t i = 0; i < images.size(); ++i) outcomes.emplace_back(ReadOnlyMount());
    return outcomes;
  }
  Result<PutOutcome> Offer(const EntryImage&, InodeNumber, bool) override {
    return ReadOnlyMount();
  }
  Result<PutOutcome> Place(InodeNumber, const EntryImage&) override { return ReadOnlyMount(); }
  Result<PutOutcome> Link(InodeNumber, InodeNumber, std::string_view) override {
    return ReadOnlyMount();
  }
  Result<bool> SetDirectory(InodeNumber, const EntryImage&) override { return ReadOnlyMount(); }
  Result<CloneOutcome> Clone(const CloneRequest&) override { return ReadOnlyMount(); }
  bool MayBeCached(InodeNumber inode) const override { return store_.lookups().Of(inode) > 0; }

 private:
  FollowedStore& store_;
};

// A reader reads by name, from the state in which it was made.
class FollowedContents final : public ContentSource {
 public:
  explicit FollowedContents(FollowedStore& store) : store_(store) {}
  std::unique_ptr<Reader> NewReader() override {
    return std::make_unique<PinnedReader>(store_.state());
  }
  Status Visit(InodeNumber file, uint64_t offset,
               const std::function<bool(const ContentPiece&)>& visit) override {
    return store_.state()->file_system->contents().Visit(file, offset, visit);
  }

 private:
  class PinnedReader final : public Reader {
   public:
    explicit PinnedReader(FollowedStore::StatePtr state)
        : state_(std::move(state)), reader_(state_->file_system->contents().NewReader()) {}
    Status Read(const ChunkPlace& place, MutableByteView out) override {
      return reader_->Read(place, out);
    }

   private:
    const FollowedStore::StatePtr state_;  // outlives the reader
    const std::unique_ptr<Reader> reader_;
  };

  FollowedStore& store_;
};

class FollowedSnapshots final : public Snapshots {
 public:
  explicit FollowedSnapshots(FollowedStore& store) : store_(store) {}
  std::vector<SnapshotInfo> List() const override {
    return store_.state()->file_system->snapshots().List();
  }
  Result<SnapshotInfo> Find(std::string_view name) const override {
    return store_.state()->file_system->snapshots().Find(name);
  }
  Result<std::vector<SnapshotSpace>> Measure(const std::function<Status()>& check) override {
    const auto state = store_.state();
    return state->file_system->snapshots().Measure(check);
  }
  Result<SnapshotInfo> Create(std::string_view) override { return ReadOnlyMount(); }
  Status Rename(std::string_view, std::string_view) override { return ReadOnlyMount(); }
  Status Remove(std::string_view) override { return ReadOnlyMount(); }
  Status Diff(std::string_view from, std::optional<std::string_view> to,
              const std::function<Status()>& check,
              const std::function<Status(const PathChange&)>& visit) override {
    const auto state = store_.state();
    return state->file_system->snapshots().Diff(from, to, check, visit);
  }
  Result<SnapshotInfo> RollBack(std::string_view, std::string_view, KernelCache*) override {
    return ReadOnlyMount();
  }
  Status AwaitRemovals() override { return ReadOnlyMount(); }
  void InterruptRemovals() override {}
  WorkProgress progress() const override {
    return store_.state()->file_system->snapshots().progress();
  }
  Result<std::unique_ptr<FileSystem>> Show(std::string_view name) override {
    return Status(StatusCode::kUnsupported,
                  "a mount that follows a writer cannot show a snapshot alone; look into the "
                  "directory .snapshots of the mount")
        .At(std::string(name));
  }

 private:
  FollowedStore& store_;
};

class FollowedTransfers final : public SnapshotTransfers {
 public:
  explicit FollowedTransfers(FollowedStore& store) : store_(store) {}
  Result<SendOutcome> Send(const SendRequest& request, ByteSink& out,
                           const std::function<Status()>& check) override {
    const auto state = store_.state();
    return state->file_system->transfers().Send(request, out, check);
  }
  Result<ReceiveOutcome> Receive(const ReceiveRequest&, ByteSource&,
                                 const std::function<Status()>&) override {
    return ReadOnlyMount();
  }
  std::vector<UnfinishedReceive> Unfinished() const override { return {}; }
  Status Abandon(std::string_view) override { return ReadOnlyMount(); }

 private:
  FollowedStore& store_;
};

class FollowedMaintenance final : public StoreMaintenance {
 public:
  explicit FollowedMaintenance(FollowedStore& store) : store_(store) {}
  Result<FileSystemStats> GetStats() override {
    const auto state = store_.state();
    return state->file_system->maintenance().GetStats();
  }
  StoreHealth GetHealth() override {
    const auto state = store_.state();
    return state->file_system->maintenance().GetHealth();
  }
  StoreActivityReport GetActivity() override {
    const auto state = store_.state();
    return state->file_system->maintenance().GetActivity();
  }
  void EndWaitingForSegmentRoom() override {}
  Result<RecompressionReport> Recompress() override { return ReadOnlyMount(); }
  void StopRecompression() override {}
  void InterruptRecompression() override {}
  Result<GarbageReport> CollectGarbage(bool) override { return ReadOnlyMount(); }
  void StopCollecting() override {}
  void InterruptCollecting() override {}
  Result<ScrubReport> Scrub(ScrubMode) override { return ReadOnlyMount(); }
  void InterruptScrub() override {}
  void StopScrubbing() override {}
  Result<StoreSurvey> Survey(const SurveyProgressFunction& on_progress) override {
    const auto state = store_.state();
    return state->file_system->maintenance().Survey(on_progress);
  }

 private:
  FollowedStore& store_;
};

class FollowedUsage final : public UsageMeasures {
 public:
  explicit FollowedUsage(FollowedStore& store) : store_(store) {}
  Result<UsageReport> Measure(const UsageRequest& request) override {
    const auto state = store_.state();
    return state->file_system->usage().Measure(request);
  }
  Result<DuplicateReport> FindDuplicates(const DuplicateRequest& request) override {
    const auto state = store_.state();
    return state->file_system->usage().FindDuplicates(request);
  }

 private:
  FollowedStore& store_;
};

}  // namespace

class FollowingFileSystem::Parts {
 public:
  explicit Parts(FollowedStore& store)
      : entries(store),
        contents(store),
        snapshots(store),
        transfers(store),
        maintenance(store),
        usage(store) {}

  FollowedEntries entries;
  FollowedContents contents;
  FollowedSnapshots snapshots;
  FollowedTransfers transfers;
  FollowedMaintenance maintenance;
  FollowedUsage usage;
};

FollowingFileSystem::FollowingFileSystem(FollowedStore& store)
    : store_(store), parts_(std::make_unique<Parts>(store)) {}

FollowingFileSystem::~FollowingFileSystem() = default;

Status FollowingFileSystem::ReadOnly() const { return ReadOnlyMount(); }

template <typename Call>
auto FollowingFileSystem::Try(const Call& call) {
  const auto state = store_.state();
  auto result = call(*state->file_system);
  const Status& status = StatusOf(result);
  const bool gone = status.Is(StatusCode::kIoError) || status.Is(StatusCode::kCorruption);
  if (!gone || !store_.Recover(state)) return result;
  StatusOf(result).IgnoreError("the call is repeated");
  return call(*store_.state()->file_system);
}

Result<Attributes> FollowingFileSystem::Lookup(InodeNumber parent, std::string_view name) {
  auto found = Try([&](FileSystem& fs) {
    auto looked_up = fs.Lookup(parent, name);
    // The lookups of the kernel are counted for all states together.
    if (looked_up.ok()) fs.Forget(looked_up->inode, 1);
    return looked_up;
  });
  if (found.ok()) store_.lookups().Add(found->inode);
  return found;
}

void FollowingFileSystem::Forget(InodeNumber inode, uint64_t lookups) {
  store_.lookups().Remove(inode, lookups);
}

Result<std::string> FollowingFileSystem::ReadLink(InodeNumber inode) {
  return Try([&](FileSystem& fs) { return fs.ReadLink(inode); });
}

Result<Attributes> FollowingFileSystem::GetAttributes(InodeNumber inode) {
  return Try([&](FileSystem& fs) { return fs.GetAttributes(inode); });
}

Result<std::string> FollowingFileSystem::GetXattr(InodeNumber inode, std::string_view name) {
  return Try([&](FileSystem& fs) { return fs.GetXattr(inode, name); });
}

Result<std::vector<std::string>> FollowingFileSystem::ListXattrs(InodeNumber inode) {
  return Try([&](FileSystem& fs) { return fs.ListXattrs(inode); });
}

// A listing that has passed records on is not repeated.
Status FollowingFileSystem::ReadDirectory(
    InodeNumber directory, uint64_t cookie,
    const std::function<bool(const DirectoryRecord&)>& visit) {
  const auto state = store_.state();
  return state->file_system->ReadDirectory(directory, cookie, visit);
}

// States come and go while a file is open, so no state counts it. Opening only checks the inode.
Status FollowingFileSystem::OpenFile(InodeNumber inode, bool truncate) {
  if (truncate) return ReadOnly();
  return Try([&](FileSystem& fs) {
    Status opened = fs.OpenFile(inode, false);
    if (opened.ok()) fs.ReleaseFile(inode);
    return opened;
  });
}

void FollowingFileSystem::ReleaseFile(InodeNumber inode) {
  // Ends the readahead for the file.
  store_.state()->file_system->ReleaseFile(inode);
}

Result<size_t> FollowingFileSystem::Read(InodeNumber inode, uint64_t offset, MutableByteView out) {
  return Try([&](FileSystem& fs) { return fs.Read(inode, offset, out); });
}

Result<std::optional<uint64_t>> FollowingFileSystem::Seek(InodeNumber inode, uint64_t offset,
                                                          SeekTarget target) {
  return Try([&](FileSystem& fs) { return fs.Seek(inode, offset, target); });
}

Result<SpaceInfo> FollowingFileSystem::GetSpaceOf(InodeNumber inode) {
  return store_.state()->file_system->GetSpaceOf(inode);
}

EntryStore& FollowingFileSystem::entries() { return parts_->entries; }
ContentSource& FollowingFileSystem::contents() { return parts_->contents; }
Snapshots& FollowingFileSystem::snapshots() { return parts_->snapshots; }
SnapshotTransfers& FollowingFileSystem::transfers() { return parts_->transfers; }
StoreMaintenance& FollowingFileSystem::maintenance() { return parts_->maintenance; }
UsageMeasures& FollowingFileSystem::usage() { return parts_->usage; }

Status FollowingFileSystem::Close() {
  store_.Stop();
  return Status::Ok();
}

}  // namespace siltfs
