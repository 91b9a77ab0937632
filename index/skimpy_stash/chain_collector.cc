#include "index/skimpy_stash/chain_collector.h"

#include <algorithm>
#include <unordered_set>

#include "index/skimpy_stash/chain_sweep.h"

namespace siltfs {

void ChainCollector::NoteAppended(uint32_t page, uint32_t records) {
  if (shape_.garbage == 0 || !counted_) return;  // CountLive will read the page
  if (live_.empty()) first_ = page;
  live_.resize(page - first_ + 1);
  live_[page - first_] = static_cast<uint16_t>(records);
}

void ChainCollector::NoteCollected(const ChainGroup& group) {
  for (const uint32_t page : group.orphans) --live_[page - first_];
}

bool ChainCollector::IsOrphaned(const ChainLog::LogFile& file) const {
  if (!counted_ || file.first < first_) return false;
  const auto begin = live_.begin() + (file.first - first_);
  return std::all_of(begin, begin + file.pages, [](uint16_t live) { return live == 0; });
}

Status ChainCollector::CountLive(const ChainLog& log, const BucketDirectory& directory) {
  std::vector<uint16_t> live(log.pages());
  SILTFS_ASSIGN_OR_RETURN(
      const SweepResult swept,
      SweepChains(files_, log, shape_, directory,
                  [&](const ChainRecord&, uint32_t page) { ++live[page - log.first_page()]; }));
  damaged_ = swept.damaged_pages > 0 || swept.broken_chains > 0;
  pages_read_ += log.pages();
  first_ = log.first_page();
  live_.swap(live);
  counted_ = true;
  return Status::Ok();
}

Result<std::optional<Bytes>> ChainCollector::ReadPage(const ChainLog& log, uint32_t page) {
  std::optional<Bytes> bytes;
  const auto address = log.AddressOf(page);
  if (!address) return bytes;
  ++pages_read_;
  SILTFS_RETURN_IF_ERROR(
      files_.Read(*address, 1, [&](uint32_t, std::optional<ConstPageBytes> read) {
        if (read) bytes.emplace(read->begin(), read->end());
        return Status::Ok();
      }));
  return bytes;
}

Result<std::optional<ChainCollector::Chain>> ChainCollector::ReadChain(
    const ChainLog& log, const BucketDirectory& directory, uint32_t bucket) {
  Chain chain;
  for (uint32_t pointer = directory.head(bucket); pointer != 0;) {
    const uint32_t here = pointer;
    SILTFS_ASSIGN_OR_RETURN(const auto bytes, ReadPage(log, here - 1));
    if (!bytes) return std::optional<Chain>();
    const ConstPageBytes page(bytes->data(), kPageSize);
    for (size_t i = ChainRecordsIn(shape_.layout, page); i-- > 0 && pointer == here;) {
      const ChainRecord record = ReadChainRecord(shape_.layout, page, i);
      if (record.BucketIn(shape_) != bucket) continue;
      chain.records.push_back(record);
      chain.pages.push_back(here - 1);
      pointer = record.pointer;
    }
    if (pointer >= here) return std::optional<Chain>();  // only damage does this
  }
  return std::optional(std::move(chain));
}

// The newest record of each hash, without tombstones and entries of gone segments that hide
// nothing; oldest first.
std::vector<ChainRecord> ChainCollector::ValidRecords(const Chain& chain,
                                                      const BucketDirectory& directory) const {
  std::vector<ChainRecord> valid;
  std::unordered_set<uint64_t> seen;
  for (const ChainRecord& record : chain.records) {
    if (!seen.insert(record.entry.hash).second) continue;
    if (record.entry.tombstone() || (gone_ && gone_(record.entry.location.segment))) {
      // A record in the first bucket may hide a record in the second one.
      const auto buckets = shape_.BucketsOf(record.entry.hash);
      const bool hides = !record.second && buckets[0] != buckets[1] &&
                         directory.MayHave(buckets[1], record.entry.hash);
      if (!hides) continue;
    }
    valid.push_back(record);
  }
  // Recovery must find a record that replaces the old chain.
  if (valid.empty()) valid.push_back(chain.records.front());
  std::ranges::reverse(valid);
  return valid;
}

// Gathers the chains that have records in a page. `done` are the buckets that were seen.
Status ChainCollector::GatherPage(const ChainLog& log, const BucketDirectory& directory,
                                  uint32_t page, ChainGroup& group, std::vector<uint32_t>& done) {
  SILTFS_ASSIGN_OR_RETURN(const auto bytes, ReadPage(log, page));
  damaged_ = damaged_ || !bytes;
  if (damaged_) return Status::Ok();
  const auto in_group = std::ranges::count(group.orphans, page);
  size_t live = live_[page - first_] - static_cast<size_t>(in_group);
  const ConstPageBytes view(bytes->data(), kPageSize);
  const size_t records = ChainRecordsIn(shape_.layout, view);
  for (size_t i = 0; i < records && live > 0 && !group.full; ++i) {
    const uint32_t bucket = ReadChainRecord(shape_.layout, view, i).BucketIn(shape_);
    if (std::ranges::find(done, bucket) != done.end()) continue;
    done.push_back(bucket);
    SILTFS_ASSIGN_OR_RETURN(const auto chain, ReadChain(log, directory, bucket));
    damaged_ = damaged_ || !chain;
    if (damaged_) return Status::Ok();
    const auto here = std::ranges::count(chain->pages, page);
    if (here == 0) continue;  // the page's records of this bucket are orphans
    live -= std::min(live, static_cast<size_t>(here));
    const std::vector<ChainRecord> valid = ValidRecords(*chain, directory);
    const size_t together = group.records.size() + valid.size();
    group.full = together >= shape_.BufferRecords();
    if (group.chains > 0 && together > shape_.BufferRecords()) break;
    group.records.insert(group.records.end(), valid.begin(), valid.end());
    group.orphans.insert(group.orphans.end(), chain->pages.begin(), chain->pages.end());
    ++group.chains;
  }
  return Status::Ok();
}

Result<ChainGroup> ChainCollector::Gather(const ChainLog& log, const BucketDirectory& directory,
                                          std::function<bool(SegmentId)> gone) {
  gone_ = std::move(gone);
  ChainGroup group;
  if (!counted_) SILTFS_RETURN_IF_ERROR(CountLive(log, directory));
  if (const uint32_t released = log.first_page() - first_; released > 0) {
    live_.erase(live_.begin(), live_.begin() + released);
    first_ = log.first_page();
  }
  std::vector<uint32_t> done;
  for (uint32_t page = first_; page < log.next_page() && !damaged_ && !group.full; ++page) {
    if (live_[page - first_] == 0) continue;
    SILTFS_RETURN_IF_ERROR(GatherPage(log, directory, page, group, done));
  }
  if (damaged_) return ChainGroup();
  return group;
}

}  // namespace siltfs
