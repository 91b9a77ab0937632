#include "fs/repair/metadata_repair.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fs/records/hidden_range.h"
#include "fs/records/lineage.h"
#include "fs/repair/counter_repair.h"
#include "fs/repair/link_repair.h"
#include "fs/repair/metadata_edit.h"
#include "fs/repair/name_repair.h"
#include "fs/repair/record_repair.h"
#include "fs/versions/lineage_view.h"

namespace siltfs {
namespace {

template <typename Step>
Status Make(KvStore& kv, MetadataRepairResult& result, const Step& step) {
  MetadataEdit edit(kv);
  SILTFS_RETURN_IF_ERROR(step(edit));
  SILTFS_RETURN_IF_ERROR(edit.Write());
  result.changes += edit.changes();
  return Status::Ok();
}

// The live files alone. Damage in received snapshots is not repaired: they can be received again.
class LiveStore final : public KvStore {
 public:
  explicit LiveStore(KvStore& all) : all_(all) {}

  Result<std::optional<std::string>> Get(std::string_view key) const override {
    return Snapshot()->Get(key);
  }
  std::shared_ptr<const KvSnapshot> Snapshot() const override {
    return MakeLineageView(all_.Snapshot(), kLiveLineage);
  }
  Status WriteFrom(const std::function<void(MutationSink&)>& fill) override {
    return all_.WriteFrom(fill);
  }
  uint64_t DiskBytes() const override { return all_.DiskBytes(); }
  Status CloseCleanly() override { return all_.CloseCleanly(); }

 private:
  KvStore& all_;
};

// Removes the inodes of clones that were not finished, as the next mount would. The other steps
// then meet no inode without a name that is no fault.
Status RemoveHidden(KvStore& kv, MetadataRepairResult& result) {
  const auto snapshot = kv.Snapshot();
  SILTFS_ASSIGN_OR_RETURN(const auto ranges, ReadHiddenRanges(*snapshot));
  for (const HiddenRange& range : ranges) {
    SILTFS_RETURN_IF_ERROR(
        RemoveHiddenRange(*snapshot, range, [&](const std::vector<Mutation>& mutations) {
          result.changes += mutations.size();
          return kv.Write(mutations);
        }));
  }
  return Status::Ok();
}

}  // namespace

Result<MetadataRepairResult> RepairMetadata(KvStore& all, const MetadataRepairOptions& options) {
  LiveStore kv(all);
  MetadataRepairResult result;
  SILTFS_RETURN_IF_ERROR(RemoveHidden(kv, result));
  if (options.all) {
    SILTFS_RETURN_IF_ERROR(Make(kv, result, [&](MetadataEdit& edit) {
      return RepairRecords(edit, {.now = options.now, .owner = options.owner}, result.lost);
    }));
    SILTFS_RETURN_IF_ERROR(
        Make(kv, result, [&](MetadataEdit& edit) { return RepairNames(edit, options.detached); }));
  }
  LinkRepairOptions links;
  links.all = options.all;
  links.now = options.now;
  SILTFS_ASSIGN_OR_RETURN(const uint64_t changes, RepairLinks(kv, links));
  result.changes += changes;
  SILTFS_RETURN_IF_ERROR(Make(kv, result, RepairCounters));
  return result;
}

}  // namespace siltfs
