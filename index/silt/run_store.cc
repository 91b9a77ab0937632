#include "index/silt/run_store.h"

#include <algorithm>

#include "index/flash/binned_pages.h"
#include "store/base/checksum.h"

namespace siltfs {
namespace {

// The payload ends with the boundaries, their size (4 bytes), 4 zeros, and a checksum of these
// parts. So opening a run reads and verifies the boundaries without the filter.
constexpr uint64_t kTrailerSize = 16;
constexpr uint64_t kChecksumSize = 8;
// Has room for the boundaries of most runs.
constexpr uint64_t kFirstRead = 1024;

Status Damaged(const FrozenFile& file, const char* what) {
  return Status(StatusCode::kCorruption, what).At(file.file().path(), file.payload_offset());
}

struct HashAndSlot {
  uint64_t hash;
  uint32_t slot;
};

// Memory that is freed soon has pages of its own, so that it leaves no holes in the heap.
using Entries = PageVector<HashAndSlot>;

// The entries in the table of the log, in order. Entries of damaged pages are left out. If a page
// could not be read when a key was put again, the table has the key twice; the later slot counts.
Entries SortedEntries(const LogStore& log, const LogStore::Contents& contents) {
  Entries entries;
  entries.reserve(log.table().size());
  const auto add = [&](uint32_t slot) {
    if (const auto entry = contents.Entry(slot)) entries.push_back({entry->hash, slot});
  };
  log.table().ForEachPlace([&](size_t, uint16_t, uint32_t slot) { add(slot); });
  log.table().ForEachStashed([&](const CuckooPlace&, uint32_t slot) { add(slot); });
  std::sort(entries.begin(), entries.end(), [](const HashAndSlot& a, const HashAndSlot& b) {
    return a.hash != b.hash ? a.hash < b.hash : a.slot > b.slot;
  });
  const auto same = [](const HashAndSlot& a, const HashAndSlot& b) { return a.hash == b.hash; };
  entries.erase(std::unique(entries.begin(), entries.end(), same), entries.end());
  return entries;
}

// Whether each bin has room in a page.
bool BinsFit(const Entries& entries, const HashBins& bins) {
  const size_t most = kChunkSlots.slots_per_page();
  for (size_t i = most; i < entries.size(); ++i) {
    if (bins.Of(entries[i].hash) == bins.Of(entries[i - most].hash)) return false;
  }
  return true;
}

void EncodeTrailer(Encoder& out, const PageBounds& bounds) {
  const size_t begin = out.view().size();
  bounds.Encode(out);
  out.U32(static_cast<uint32_t>(out.view().size() - begin)).U32(0);
  out.U64(Checksum(out.view().subspan(begin)));
}

// The number of bytes of the boundaries and the trailer, from the payload's last bytes.
uint64_t EndSize(ByteView end) {
  return uint64_t{Decoder(end.last(kTrailerSize)).U32()} + kTrailerSize;
}

struct PayloadEnd {
  PageBounds bounds;
  uint64_t size = 0;  // with the trailer
};

Result<PayloadEnd> ReadPayloadEnd(const FrozenFile& file) {
  const uint64_t payload = file.info().payload_bytes;
  if (payload < kTrailerSize) return Damaged(file, "has no page boundaries");
  SILTFS_ASSIGN_OR_RETURN(Bytes end, file.ReadPayloadEnd(std::min(payload, kFirstRead)));
  const uint64_t size = EndSize(end);
  if (size > payload) return Damaged(file, "has page boundaries of an invalid size");
  if (size > end.size()) {
    SILTFS_ASSIGN_OR_RETURN(end, file.ReadPayloadEnd(size));
  }
  const ByteView all = ByteView(end).last(size);
  if (Decoder(all.last(kChecksumSize)).U64() != Checksum(all.first(size - kChecksumSize))) {
    return Damaged(file, "has page boundaries with a wrong checksum");
  }
  auto bounds = PageBounds::Decode(all.first(size - kTrailerSize));
  if (!bounds.ok()) {
    return std::move(bounds).status().At(file.file().path(), file.payload_offset());
  }
  return PayloadEnd{.bounds = std::move(*bounds), .size = size};
}

}  // namespace

// --- Writing ---

Result<std::optional<ConvertedFile>> RunStore::WriteFrom(const LogStore& log, Env& env,
                                                         const std::string& directory,
                                                         const StoreFileId& id, Throttle& throttle,
                                                         const WriteOptions& options) {
  SILTFS_ASSIGN_OR_RETURN(const LogStore::Contents contents, log.ReadAll());
  const Entries entries = SortedEntries(log, contents);
  const HashBins bins{.skip_bits = options.partition_bits,
                      .count = std::max<uint64_t>(entries.size(), 1)};
  if (entries.empty() || !BinsFit(entries, bins)) return std::optional<ConvertedFile>();
  SILTFS_ASSIGN_OR_RETURN(auto writer,
                          FrozenFileWriter::Create(env, directory, id, throttle, log.layout()));
  FrozenFileInfo info;
  info.page_index = PageIndexKind::kBounds;
  BinnedPages pages(*writer, bins);
  RunFilterBuilder filter(
      entries.size(), options.partition_bits,
      RunFilterSlices::For(options.runs_per_partition, entries.size()).Of(id.id));
  for (const auto& [hash, slot] : entries) {
    const SlotEntry entry = *contents.Entry(slot);
    SILTFS_RETURN_IF_ERROR(pages.Append(hash, entry));
    ++info.entries;
    if (IsTombstone(entry)) ++info.tombstones;
    filter.Add(hash);
  }
  SILTFS_ASSIGN_OR_RETURN(const PageBounds bounds, pages.Finish());
  Encoder payload;
  filter.Finish().Encode(payload);
  EncodeTrailer(payload, bounds);
  SILTFS_RETURN_IF_ERROR(writer->Finish(info, payload.view()));
  return std::optional(
      ConvertedFile{.file = std::move(writer), .damaged_pages = contents.damaged_pages});
}

// --- Opening ---

Result<std::shared_ptr<const RunStore>> RunStore::Of(std::shared_ptr<const FrozenFile> file,
                                                     unsigned partition_bits) {
  const FrozenFileInfo& info = file->info();
  const auto wrong = [&](const char* what) {
    return Status(StatusCode::kCorruption, what).At(file->file().path());
  };
  if (!info.layout.hashed() || info.bucket_bits != 0 || info.has_filter) {
    return wrong("has a footer that no sorted run has");
  }
  if (info.pages < info.layout.PagesFor(info.entries) || info.pages > info.entries) {
    return wrong("has a number of pages that does not match its entries");
  }
  if (info.payload_bytes > file->MostPayloadBytes()) {
    return wrong("has a filter of an invalid size");
  }
  SILTFS_ASSIGN_OR_RETURN(PayloadEnd end, ReadPayloadEnd(*file));
  PageBounds& bounds = end.bounds;
  // A lookup reads one page, so no bin may lie in two.
  if (bounds.pages() != info.pages || bounds.bins().skip_bits != partition_bits ||
      !bounds.EachBinInOnePage()) {
    return Damaged(*file, "has page boundaries for other entries");
  }
  // The rest of the payload is the filter: a header, which is not kept, and the words.
  const uint64_t filter = info.payload_bytes - end.size;
  const uint64_t memory = RunFilterMemory(filter - std::min(filter, kRunFilterHeaderBytes));
  return std::shared_ptr<const RunStore>(
      new RunStore(std::move(file), std::make_shared<const PageBounds>(std::move(bounds)), memory,
                   nullptr, std::make_shared<StoreCounters>()));
}

Result<RunFilter> RunStore::ReadFilter() const {
  SILTFS_ASSIGN_OR_RETURN(const Bytes payload, file_->ReadPayload(file_->MostPayloadBytes()));
  const uint64_t end = EndSize(payload);  // Of has verified that the payload is long enough
  if (end > payload.size()) return Damaged(*file_, "has a filter of an invalid size");
  auto filter = RunFilter::Decode(ByteView(payload).first(payload.size() - end));
  if (!filter.ok()) {
    return std::move(filter).status().At(file_->file().path(), file_->payload_offset());
  }
  if (filter->shape().skip_bits != bounds_->bins().skip_bits) {
    return Damaged(*file_, "has a filter of another partition");
  }
  return filter;
}

Result<std::shared_ptr<const ConvertedStore>> RunStore::WithFilter() const {
  SILTFS_ASSIGN_OR_RETURN(RunFilter filter, ReadFilter());
  return std::shared_ptr<const ConvertedStore>(
      new RunStore(file_, bounds_, filter_bytes_,
                   std::make_shared<const RunFilter>(std::move(filter)), counters_));
}

std::shared_ptr<const ConvertedStore> RunStore::WithoutFilter() const {
  return std::shared_ptr<const ConvertedStore>(
      new RunStore(file_, bounds_, filter_bytes_, nullptr, counters_));
}

ConvertedStore::Places RunStore::PlacesOf(uint64_t hash) const {
  Places places;
  places.are_pages = true;
  if (filter_ == nullptr || filter_->MayContain(hash)) {
    places.candidates.Add(bounds_->PagesOf(hash).first);
  }
  return places;
}

Result<ConvertedStore::Finder> RunStore::ReadFinder() const {
  SILTFS_ASSIGN_OR_RETURN(RunFilter filter, ReadFilter());
  return Finder([this, filter = std::move(filter)](uint64_t hash, uint32_t slot) {
    return filter.MayContain(hash) && bounds_->PagesOf(hash).first == layout().PageOf(slot);
  });
}

IndexComponentStats RunStore::Stats() const {
  IndexComponentStats stats = FileStats();
  stats.kind = "run_store";
  stats.memory_bytes = bounds_->memory_bytes() + (filter_ ? filter_->memory_bytes() : 0);
  stats.occupancy = static_cast<double>(entries()) /
                    static_cast<double>(uint64_t{file_->info().pages} * layout().slots_per_page());
  return stats;
}

}  // namespace siltfs
