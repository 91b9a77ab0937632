// The directory of a SkimpyStash partition on flash, and its recovery.
#include <algorithm>

#include "index/flash/payload_pages.h"
#include "index/skimpy_stash/chain_sweep.h"
#include "index/skimpy_stash/skimpy_stash_partition.h"
#include "store/base/aligned_buffer.h"
#include "store/base/coding.h"

namespace siltfs {

// --- State ---

std::string SkimpyStashPartition::Encode() const {
  ReaderLock lock(mutex_);
  const ChainLog& log = version_->log();
  Encoder out;
  out.U32(log.first_page()).U32(log.next_page()).U64(directory_.entries()).I64(garbage_);
  out.U64(written_.first.value).U32(written_.log_pages).U8(written_.filters ? 1 : 0);
  return out.Take();
}

Result<std::unique_ptr<FlashPartition>> SkimpyStashPartition::Open(FlashContext& context,
                                                                   uint64_t id,
                                                                   const HashPrefix& prefix,
                                                                   const SkimpyStashShape& shape,
                                                                   ByteView state) {
  Decoder in(state);
  const uint32_t first_page = in.U32();
  const uint32_t next_page = in.U32();
  const uint64_t entries = in.U64();
  const int64_t garbage = in.I64();
  WrittenDirectory written;
  written.first.value = in.U64();
  written.log_pages = in.U32();
  const uint8_t filters = in.U8();
  written.filters = filters == 1;
  if (!in.Done() || first_page > next_page || next_page >= ChainRecord::kMostPointer ||
      written.log_pages > next_page || filters > 1 || (filters == 1 && !shape.enhanced)) {
    return Status(StatusCode::kCorruption, "describes a log of chains wrongly");
  }
  // Heads take less memory than their entries take space, but for those of new partitions. (An
  // index that has lost nearly all of its billions of entries is refused, too; a new one needs less
  // memory.)
  const uint64_t heads = BucketDirectory::EncodedSize(shape, /*with_filters=*/false);
  if (next_page > 0 &&
      context.table_bytes + heads > SkimpyStashShape::kMostNewHeads + context.files.flash_bytes()) {
    return Status(StatusCode::kCorruption, "describes more chains than its files can have");
  }
  if (written.first.value != 0) {
    written.pages = PayloadPages(BucketDirectory::EncodedSize(shape, written.filters));
  }
  SILTFS_ASSIGN_OR_RETURN(ChainLog log,
                          ChainLog::Open(context.files, kRecordLog, id, first_page, next_page));
  auto partition = std::make_unique<SkimpyStashPartition>(context, id, prefix, shape);
  // Collect keeps the number within these bounds.
  const int64_t group = GroupGarbage(shape);
  partition->garbage_ = std::clamp(garbage, -group * shape.BufferRecords(),
                                   group + int64_t{2} * shape.BufferRecords());
  SILTFS_RETURN_IF_ERROR(partition->Resume(std::move(log), written, entries));
  return std::unique_ptr<FlashPartition>(std::move(partition));
}

// Continues with a log and a directory that are on flash.
Status SkimpyStashPartition::Resume(ChainLog log, const WrittenDirectory& written,
                                    uint64_t entries) {
  const bool empty = log.next_page() == 0;
  {
    WriterLock lock(mutex_);
    written_ = written;
    version_ = std::make_shared<SkimpyStashVersion>(files(), shape_, std::move(log));
  }
  if (empty) return Status::Ok();
  collector_.Forget();
  BucketDirectory directory(shape_);
  SILTFS_ASSIGN_OR_RETURN(const bool whole, Recover(directory, /*with_filters=*/false));
  if (!whole) return {StatusCode::kCorruption, "has a damaged page in a log of chains"};
  directory.SetEntries(entries);
  WriterLock lock(mutex_);
  directory_ = std::move(directory);
  AccountMemory();
  return Status::Ok();
}

Result<bool> SkimpyStashPartition::Recover(BucketDirectory& directory, bool with_filters) {
  const PageFiles::FilePin pin = files().Pin();
  const auto version = this->version();
  const ChainLog& log = version->log();
  WrittenDirectory written;
  {
    ReaderLock lock(mutex_);
    written = written_;
  }
  uint32_t from = log.first_page();
  const bool usable =
      written.first.value != 0 && !written.damaged && (written.filters || !with_filters);
  bool read = false;
  if (usable) {
    SILTFS_ASSIGN_OR_RETURN(
        const auto bytes,
        ReadPayload(files(), written.first, BucketDirectory::EncodedSize(shape_, written.filters),
                    SkimpyStashShape::kDirectoryPage));
    read = bytes && directory.Decode(*bytes, with_filters, written.log_pages);
    if (!read) {
      ++context().damaged_filters;
      WriterLock lock(mutex_);
      written_.damaged = true;
    }
  }
  if (read) {
    from = std::max(from, written.log_pages);
  } else {
    directory.MakeHeads();
    if (with_filters) directory.MakeFilters();
  }
  return ReplayChains(files(), log, shape_, from, directory);
}

Status SkimpyStashPartition::WriteDirectory() {
  Bytes bytes;
  WrittenDirectory made;
  {
    ReaderLock lock(mutex_);
    bytes = directory_.Encode();
    made.filters = directory_.has_filters();
    made.log_pages = version_->log().next_page();
  }
  made.pages = PayloadPages(bytes.size());
  AlignedBuffer pages(size_t{made.pages} * kPageSize);
  WritePayload(pages.view(), SkimpyStashShape::kDirectoryPage, bytes);
  SILTFS_ASSIGN_OR_RETURN(made.first, files().Append(kDirectoryLog, 0, pages.view()));
  {
    WriterLock lock(mutex_);
    std::swap(written_, made);
    tally_.directory_pages += written_.pages;
  }
  if (made.first.value != 0) files().Release(made.first, made.pages);
  changed = true;
  return Status::Ok();
}

// --- Filters ---

void SkimpyStashPartition::DropFilters() {
  WriterLock lock(mutex_);
  directory_.DropFilters();
  AccountMemory();
}

bool SkimpyStashPartition::HasDroppedFilters() const { return DroppedFilterBytes() > 0; }

uint64_t SkimpyStashPartition::DroppedFilterBytes() const {
  ReaderLock lock(mutex_);
  if (!shape_.enhanced || filters_are_lost_ || !directory_.has_heads()) return 0;
  if (directory_.has_filters()) return 0;
  // Heads are read again, too.
  return BucketDirectory::EncodedSize(shape_, /*with_filters=*/true);
}

Status SkimpyStashPartition::LoadFilters() {
  BucketDirectory directory(shape_);
  SILTFS_ASSIGN_OR_RETURN(const bool whole, Recover(directory, /*with_filters=*/true));
  if (!whole) {
    filters_are_lost_ = true;
    ++context().damaged_filters;
    return Status::Ok();
  }
  WriterLock lock(mutex_);
  directory_.TakeFilters(directory);
  AccountMemory();
  return Status::Ok();
}

}  // namespace siltfs
