#include <algorithm>
#include <map>

#include "index/flash/payload_pages.h"
#include "index/slice_bloom/slice_bloom_impl.h"
#include "store/base/aligned_buffer.h"
#include "store/base/checksum.h"
#include "store/base/coding.h"
#include "store/env/files.h"

namespace siltfs {
namespace {

constexpr uint8_t kSavedPage = 3;

// Each slicefilter, and each saved group, has a file of its own.
std::vector<PageLogSpec> LogsIn(const std::string& directory) {
  return {{.directory = directory, .pages_per_file = 1},
          {.directory = directory, .pages_per_file = 1}};
}

}  // namespace

SliceBloomImpl::SliceBloomImpl(Env& env, const SliceBloomOptions& options)
    : env_(env),
      options_(options),
      files_(env, LogsIn(options.directory), options.read_only),
      readers_(env, [this] { return options_.read_depth; }),
      state_(env, options.directory) {}

Result<std::unique_ptr<SliceBloom>> SliceBloom::Open(Env& env, const SliceBloomOptions& options) {
  SILTFS_RETURN_IF_ERROR(CheckSliceBloomShape(options.shape));
  auto opened = std::make_unique<SliceBloomImpl>(env, options);
  SILTFS_RETURN_IF_ERROR(opened->OpenAll());
  return std::unique_ptr<SliceBloom>(std::move(opened));
}

Status SliceBloomImpl::OpenAll() {
  // Fails if the directory is missing.
  SILTFS_RETURN_IF_ERROR(env_.ListDirectory(options_.directory).status());
  MutexLock write_lock(write_mutex_);
  SILTFS_ASSIGN_OR_RETURN(const bool there, state_.Read());
  Status opened = there ? OpenExisting() : MakeNew();
  if (!opened.ok() && opened.path().empty()) return std::move(opened).At(options_.directory);
  return opened;
}

Status SliceBloomImpl::MakeNew() {
  SILTFS_ASSIGN_OR_RETURN(const bool any, files_.AnyThere());
  if (any) return {StatusCode::kCorruption, "has files of a SliceBloom, but no manifest"};
  header_.shape = options_.shape;
  if (options_.secret) {
    header_.secret = *options_.secret;
  } else {
    Bytes secret(sizeof header_.secret);
    SILTFS_RETURN_IF_ERROR(env_.FillRandom(secret));
    header_.secret = Decoder(secret).U64();
  }
  filter_shape_ = header_.FilterShape();
  const size_t partitions = size_t{1} << header_.shape.partition_bits;
  {
    WriterLock lock(mutex_);
    present_filters_.assign(partitions, BloomFilter(filter_shape_));
    partitions_.assign(partitions, std::make_shared<const SliceFilters>());
  }
  if (options_.read_only) return Status::Ok();
  for (size_t i = 0; i < partitions; ++i) changed_partitions_.push_back(i);
  changed_ = true;
  return Commit();
}

Status SliceBloomImpl::OpenExisting() {
  SILTFS_ASSIGN_OR_RETURN(SliceBloomState state, DecodeSliceBloomState(state_.records(), files_));
  header_ = state.header;
  filter_shape_ = header_.FilterShape();
  SILTFS_RETURN_IF_ERROR(files_.Open());
  {
    WriterLock lock(mutex_);
    present_filters_.assign(state.partitions.size(), BloomFilter(filter_shape_));
    for (SliceFilters& filters : state.partitions) {
      partitions_.push_back(std::make_shared<const SliceFilters>(std::move(filters)));
    }
    groups_ = std::move(state.groups);
    for (uint32_t group = 0; group < groups_.size(); ++group) {
      for (const auto& member : groups_[group].members) group_of_[member.segment] = group;
    }
  }
  committed_groups_ = state.header.groups;
  SILTFS_RETURN_IF_ERROR(CountUses(state.saved));
  if (state.saved) SILTFS_RETURN_IF_ERROR(LoadSaved(std::move(*state.saved)));
  state_memory_ = state_.memory_bytes();
  if (options_.read_only) return Status::Ok();
  SILTFS_RETURN_IF_ERROR(state_.FinishRead());
  SILTFS_RETURN_IF_ERROR(files_.RemoveLeftovers());
  return Status::Ok();
}

// Continues with the group that Close has saved. If its pages are damaged, its segments are not
// covered.
Status SliceBloomImpl::LoadSaved(SavedGroup saved) {
  const PageFiles::FilePin pin = files_.Pin();
  WriterLock lock(mutex_);
  const uint64_t all_bytes = FilterBytes() * present_filters_.size();
  SILTFS_ASSIGN_OR_RETURN(const auto bytes,
                          ReadPayload(files_, saved.first, all_bytes, kSavedPage));
  if (bytes) {
    for (size_t i = 0; i < present_filters_.size(); ++i) {
      present_filters_[i] =
          BloomFilter(filter_shape_, ByteView(*bytes).subspan(i * FilterBytes(), FilterBytes()));
    }
    present_ = saved.group;
    for (const auto& member : present_.members) group_of_[member.segment] = kPresent;
  } else {
    ++damaged_pages_;
    unsaved_ = true;
  }
  saved_ = std::move(saved);
  return Status::Ok();
}

// Enters the pages that slicefilters and the saved group use. Each has a whole file of its own;
// otherwise one of them could release pages that another one uses.
Status SliceBloomImpl::CountUses(const std::optional<SavedGroup>& saved) {
  std::map<uint64_t, uint64_t> pages_of_file;
  bool alone = true;
  const auto use = [&](PageAddress first, uint32_t pages) {
    alone = alone && first.page() == 0 && pages_of_file.emplace(first.file(), pages).second;
  };
  const auto positions = static_cast<uint32_t>(filter_shape_.bits());
  ReaderLock lock(mutex_);
  for (const auto& filters : partitions_) {
    for (const SliceFilter& filter : *filters) {
      if (filter.first.value == 0) continue;
      use(filter.first, SliceFilter::Pages(positions, filter.columns));
    }
  }
  if (saved) use(saved->first, PayloadPages(FilterBytes() * present_filters_.size()));
  if (!alone) return {StatusCode::kCorruption, "has slicefilters that share a file"};
  return files_.SetUses(pages_of_file);
}

uint64_t SliceBloomImpl::HashOf(uint64_t name) const {
  Encoder out;
  out.U64(name);
  return Checksum(out.view(), header_.secret);
}

size_t SliceBloomImpl::PartitionOf(uint64_t hash) const {
  const unsigned bits = header_.shape.partition_bits;
  return bits == 0 ? 0 : static_cast<size_t>(hash >> (64 - bits));
}

SliceBloomStats SliceBloomImpl::stats() const {
  SliceBloomStats stats{.shape = header_.shape};
  {
    ReaderLock lock(mutex_);
    for (const SliceBloomGroup& group : groups_) {
      if (group.members.empty()) continue;
      ++stats.groups;
      stats.names += group.names;
    }
    stats.names += present_.names;
    for (const auto& filters : partitions_) {
      stats.filters += static_cast<uint64_t>(std::ranges::count_if(
          *filters, [](const SliceFilter& filter) { return filter.first.value != 0; }));
      stats.memory_bytes += filters->size() * sizeof(SliceFilter);
    }
    stats.segments = group_of_.size();
    stats.memory_bytes += FilterBytes() * present_filters_.size();
    // A node of the table, a member, and its record.
    stats.memory_bytes +=
        group_of_.size() * (4 * sizeof(void*) + 2 * sizeof(SliceBloomGroup::Member));
    stats.memory_bytes += groups_.size() * sizeof(SliceBloomGroup);
  }
  stats.memory_bytes += state_memory_ + readers_.memory_bytes();
  stats.flash_bytes = files_.flash_bytes();
  stats.flash_bytes_written = files_.bytes_written() + state_bytes_written_;
  stats.flash_reads = flash_reads_;
  stats.flash_pages_read = flash_reads_;
  stats.damaged_pages = damaged_pages_;
  return stats;
}

Status SliceBloomImpl::Verify(const std::function<void(const std::string&)>& report) {
  return files_.Verify([&](const std::string& path, uint64_t offset) {
    report(path + ": the page at " + std::to_string(offset) + " is damaged");
  });
}

Status SliceBloomImpl::Close() {
  MutexLock write_lock(write_mutex_);
  if (closed_ || options_.read_only) return Status::Ok();
  SILTFS_RETURN_IF_ERROR(stopped_);
  if (unsaved_) SILTFS_RETURN_IF_ERROR(SavePresent());
  SILTFS_RETURN_IF_ERROR(StopUnlessNoSpace(Commit()));
  Status folded = StopUnlessNoSpace(state_.Fold());
  state_bytes_written_ = state_.bytes_written();
  closed_ = folded.ok();
  return folded;
}

Status SliceBloomImpl::SavePresent() {
  ReleaseSaved();
  SavedGroup saved;
  Bytes bytes;
  {
    ReaderLock lock(mutex_);
    saved.group = present_;
    for (const BloomFilter& filter : present_filters_) {
      const Bytes filter_bytes = filter.bytes();
      bytes.insert(bytes.end(), filter_bytes.begin(), filter_bytes.end());
    }
  }
  if (!saved.group.members.empty()) {
    AlignedBuffer pages(size_t{PayloadPages(bytes.size())} * kPageSize);
    WritePayload(pages.view(), kSavedPage, bytes);
    auto first = files_.Append(kSavedLog, 0, pages.view());
    if (!first.ok()) return StopUnlessNoSpace(std::move(first).status());
    saved.first = *first;
    saved_ = std::move(saved);
    changed_ = true;
  }
  unsaved_ = false;
  return Status::Ok();
}

}  // namespace siltfs
