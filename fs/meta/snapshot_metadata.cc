#include "fs/meta/snapshot_metadata.h"

#include <string>
#include <utility>
#include <vector>

#include "fs/meta/group.h"
#include "fs/meta/snapshot_counters.h"
#include "fs/meta/view_source.h"
#include "fs/records/schema.h"
#include "fs/versions/snapshot_view.h"

namespace siltfs {
namespace {

Status ReadOnly() { return {StatusCode::kReadOnly, "a snapshot cannot be changed"}; }

class SnapshotMetadata final : public MetadataStore {
 public:
  SnapshotMetadata(const CommitPort& live, const NumberedSnapshot& snapshot)
      : live_(live),
        bounds_(BoundsOf(snapshot)),
        commit_(snapshot.record.commit),
        counters_(CountersOf(snapshot.record)) {}

  std::shared_ptr<const KvSnapshot> CommittedSnapshot() const override {
    return MakeSnapshotView(live_.CommittedSnapshot(), bounds_);
  }
  View Pin() const override {
    return View(std::make_shared<const View::Source>(no_changes_, nullptr, CommittedSnapshot()));
  }
  Result<std::optional<std::string>> Get(std::string_view key) const override {
    return CommittedSnapshot()->Get(key);
  }
  Counters counters() const override { return counters_; }
  uint64_t last_commit() const override { return commit_; }
  Status failure() const override { return Status::Ok(); }
  uint64_t DiskBytes() const override { return 0; }

  SnapshotPort* snapshots() override { return nullptr; }
  LineagePort* lineages() override { return nullptr; }
  void SetParticipant(CommitParticipant*) override {}
  void SetDeferredChanges(DeferredChanges*) override {}
  Status WriteThrough(const std::vector<Mutation>&) override { return ReadOnly(); }
  Result<std::unique_ptr<KvLoad>> NewLoad() override { return ReadOnly(); }
  Status WaitForRoom() override { return ReadOnly(); }
  Result<uint64_t> Apply(std::vector<Mutation>, const Counters&, const QuotaDifferences&) override {
    return ReadOnly();
  }
  Result<uint64_t> Join() override { return ReadOnly(); }
  Status ApplyTo(uint64_t, std::vector<Mutation>, const Counters&,
                 const QuotaDifferences&) override {
    return ReadOnly();
  }
  // A snapshot is durable.
  Status Commit(uint64_t) override { return Status::Ok(); }
  Status CommitAll() override { return Status::Ok(); }
  Status CommitAllLocally() override { return Status::Ok(); }
  Status AwaitShipped() override { return Status::Ok(); }
  void EndCommits() override {}
  Status Close() override { return Status::Ok(); }

 private:
  const CommitPort& live_;
  const SnapshotBounds bounds_;
  const uint64_t commit_;
  const Counters counters_;
  const std::shared_ptr<const Group> no_changes_ = std::make_shared<const Group>();
};

}  // namespace

std::unique_ptr<MetadataStore> OpenSnapshotMetadata(const CommitPort& live,
                                                    const NumberedSnapshot& snapshot) {
  return std::make_unique<SnapshotMetadata>(live, snapshot);
}

}  // namespace siltfs
