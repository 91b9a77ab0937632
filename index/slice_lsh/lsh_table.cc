#include "index/slice_lsh/lsh_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "store/base/aligned_buffer.h"

namespace siltfs {
namespace {

constexpr uint32_t kReadAtOnce = 8;      // pages
constexpr uint32_t kWrittenAtOnce = 32;  // pages
// So many pages of a slicetable become one at most. It limits the memory of a merge if a manifest
// gives a slicetable fewer entries than it has.
constexpr uint32_t kMostPagesToOne = 16;

}  // namespace

// --- Reading ---

Status LshTableReader::TakeBelow(uint64_t end, std::vector<Read>& entries) {
  while (next_page_ < table_.pages && LshFirstKey(next_page_, table_.pages) < end) {
    SILTFS_RETURN_IF_ERROR(ReadSome());
  }
  const auto middle = std::stable_partition(
      waiting_.begin(), waiting_.end(), [&](const Read& read) { return read.entry.key >= end; });
  entries.insert(entries.end(), middle, waiting_.end());
  waiting_.erase(middle, waiting_.end());
  return Status::Ok();
}

Status LshTableReader::ReadSome() {
  const uint32_t from = next_page_;
  const uint32_t count = std::min(kReadAtOnce, table_.pages - from);
  next_page_ += count;
  return files_.Read(table_.first + from, count,
                     [&](uint32_t i, std::optional<ConstPageBytes> page) {
                       const auto here = page ? LshEntriesOf(*page) : std::nullopt;
                       bool whole = here.has_value();
                       for (uint32_t position = 0; position < here.value_or(0); ++position) {
                         const LshEntry entry = ReadLshEntry(*page, position);
                         const bool right = LshPageOf(entry.key, table_.pages) == from + i;
                         if (right) waiting_.push_back({.entry = entry, .position = position});
                         whole = whole && right;
                       }
                       if (!whole) ++damaged_pages_;
                       return Status::Ok();
                     });
}

Status VerifyLshTable(const PageFiles& files, const LshTable& table,
                      const std::function<void(const std::string&)>& report) {
  uint64_t entries = 0;
  uint64_t damaged_pages = 0;
  bool misplaced = false;
  bool foreign = false;
  SILTFS_RETURN_IF_ERROR(
      files.Read(table.first, table.pages, [&](uint32_t i, std::optional<ConstPageBytes> page) {
        const auto here = page ? LshEntriesOf(*page) : std::nullopt;
        if (!here) {
          ++damaged_pages;
          foreign = foreign || page.has_value();
          return Status::Ok();
        }
        entries += *here;
        for (uint32_t position = 0; position < *here; ++position) {
          const uint64_t key = ReadLshEntry(*page, position).key;
          misplaced = misplaced || LshPageOf(key, table.pages) != i;
        }
        return Status::Ok();
      }));
  const auto say = [&](std::string_view what) {
    const auto place = files.Resolve(table.first);
    report(fmt::format("{}: {}", place ? place->file->path() : "a missing file", what));
  };
  if (foreign) say("has a page that is no slice");
  if (misplaced) say("has an entry in the slice of other keys");
  if (damaged_pages == 0 && entries != table.entries) {
    say(fmt::format("has {} entries, not {}", entries, table.entries));
  }
  return Status::Ok();
}

// --- Merging ---

namespace {

// Appends slices to a new file.
class SliceWriter {
 public:
  SliceWriter(PageFiles& files, const LshMergeOptions& options)
      : files_(files), options_(options), pages_(size_t{kWrittenAtOnce} * kPageSize) {}
  ~SliceWriter() {
    if (table_.pages > 0) files_.Release(table_.first, table_.pages);
    files_.EndFile(options_.log, options_.stream);
  }

  // The memory of the next page, which is zero.
  PageBytes Next() {
    const auto bytes = pages_.view().subspan(size_t{waiting_} * kPageSize, kPageSize);
    std::ranges::fill(bytes, 0);
    return PageBytes(bytes.data(), kPageSize);
  }
  // Appends the page of the last Next.
  Status Append(uint32_t entries) {
    table_.entries += entries;
    return ++waiting_ < kWrittenAtOnce ? Status::Ok() : Write();
  }
  Result<LshTable> Finish() {
    SILTFS_RETURN_IF_ERROR(Write());
    if (table_.entries == 0) return LshTable();
    files_.EndFile(options_.log, options_.stream);
    return std::exchange(table_, {});
  }

 private:
  Status Write() {
    if (waiting_ == 0) return Status::Ok();
    SILTFS_ASSIGN_OR_RETURN(const PageAddress first,
                            files_.Append(options_.log, options_.stream,
                                          pages_.view().first(size_t{waiting_} * kPageSize)));
    if (table_.pages == 0) table_.first = first;
    table_.pages += waiting_;
    waiting_ = 0;
    return Status::Ok();
  }

  PageFiles& files_;
  const LshMergeOptions& options_;
  AlignedBuffer pages_;
  uint32_t waiting_ = 0;  // pages that are not written yet
  LshTable table_;
};

class Merge {
 public:
  Merge(const PageFiles& files, std::span<const LshEntry> buffer, std::span<const LshTable> old,
        const LshMergeOptions& options, LshMergeCounts& counts)
      : options_(options), counts_(counts), buffer_(buffer) {
    for (size_t i = old.size(); i-- > 0;) sources_.emplace_back(files, old[i]);
  }
  ~Merge() {
    for (const LshTableReader& source : sources_) counts_.damaged_pages += source.damaged_pages();
  }

  // Collects the slice with all keys below `end` that are left.
  Status CollectBelow(uint64_t end);
  const std::vector<LshEntry>& slice() const { return slice_; }

 private:
  struct Aged {
    LshEntry entry;
    uint64_t age = 0;  // the incarnation, and the place in it
    bool dropped = false;
  };

  void DropRepeated();

  const LshMergeOptions& options_;
  LshMergeCounts& counts_;
  std::span<const LshEntry> buffer_;     // that are left
  std::vector<LshTableReader> sources_;  // newest first
  std::vector<LshTableReader::Read> read_;
  std::vector<Aged> aged_;
  std::vector<LshEntry> slice_;
};

Status Merge::CollectBelow(uint64_t end) {
  aged_.clear();
  size_t taken = 0;
  for (; taken < buffer_.size() && buffer_[taken].key < end; ++taken) {
    aged_.push_back({.entry = buffer_[taken], .age = taken});
  }
  buffer_ = buffer_.subspan(taken);
  for (size_t i = 0; i < sources_.size(); ++i) {
    read_.clear();
    SILTFS_RETURN_IF_ERROR(sources_[i].TakeBelow(end, read_));
    for (const auto& [entry, position] : read_) {
      if (options_.is_gone != nullptr && *options_.is_gone &&
          (*options_.is_gone)(entry.place.segment)) {
        ++counts_.gone;
        continue;
      }
      aged_.push_back({.entry = entry, .age = uint64_t{i + 1} << 32 | position});
    }
  }
  DropRepeated();
  std::ranges::stable_sort(aged_, {}, &Aged::age);
  slice_.clear();
  for (const Aged& one : aged_) {
    if (one.dropped) continue;
    if (slice_.size() == kLshEntriesPerPage) {
      ++counts_.overwritten;
      continue;
    }
    slice_.push_back(one.entry);
  }
  return Status::Ok();
}

// Leaves the newest entries of each key, and each place once.
void Merge::DropRepeated() {
  std::ranges::stable_sort(aged_, [](const Aged& a, const Aged& b) {
    return a.entry.key != b.entry.key ? a.entry.key < b.entry.key : a.age < b.age;
  });
  for (size_t begin = 0, end = 0; begin < aged_.size(); begin = end) {
    std::vector<SliceLshPlace> kept;
    for (end = begin; end < aged_.size() && aged_[end].entry.key == aged_[begin].entry.key; ++end) {
      const SliceLshPlace& place = aged_[end].entry.place;
      if (kept.size() < options_.most_per_feature && std::ranges::find(kept, place) == kept.end()) {
        kept.push_back(place);
        continue;
      }
      aged_[end].dropped = true;
      ++counts_.repeated;
    }
  }
}

}  // namespace

Result<LshTable> MergeLshTables(PageFiles& files, std::span<const LshEntry> buffer,
                                std::span<const LshTable> old, const LshMergeOptions& options,
                                LshMergeCounts& counts) {
  uint64_t entries = buffer.size();
  uint32_t least_pages = 1;
  for (const LshTable& table : old) {
    entries += table.entries;
    least_pages = std::max(least_pages, table.pages / kMostPagesToOne);
  }
  const auto pages = std::max(
      static_cast<uint32_t>(LshPagesFor(std::min(entries, options.most_entries))), least_pages);
  Merge merge(files, buffer, old, options, counts);
  SliceWriter writer(files, options);
  for (uint32_t i = 0; i < pages; ++i) {
    SILTFS_RETURN_IF_ERROR(merge.CollectBelow(LshFirstKey(i + 1, pages)));
    const PageBytes page = writer.Next();
    const auto& slice = merge.slice();
    for (size_t position = 0; position < slice.size(); ++position) {
      WriteLshEntry(page, position, slice[position]);
    }
    SetPageKind(page, kLshPage, static_cast<uint16_t>(slice.size()));
    SILTFS_RETURN_IF_ERROR(writer.Append(static_cast<uint32_t>(slice.size())));
  }
  return writer.Finish();
}

}  // namespace siltfs
