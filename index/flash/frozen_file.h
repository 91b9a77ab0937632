// The files of immutable stores, such as SILT's HashStores, sorted runs and SortedStores: pages of
// slots, followed by the filter or page index. A file is written once from front to back, in large
// writes. Format: docs/format.md, "SILT frozen store".
//
// A page with hashed slots has its checksum in its header, and every reader verifies it. Named
// slots take the whole page, so their checksums follow the last page and are not kept in memory: a
// lookup does not verify the page that it reads. Scans of a whole store, by a merge or a
// verification, check every page of either kind.
//
// Thread-safety: a writer belongs to one thread; a FrozenFile is const. Durability: a file is
// durable only after FrozenFileWriter::Sync and the caller's SyncDirectory.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "index/flash/page_header.h"
#include "index/flash/page_index_kind.h"
#include "index/flash/slot.h"
#include "index/flash/store_files.h"
#include "index/flash/throttle.h"
#include "store/base/aligned_buffer.h"
#include "store/env/env.h"

namespace siltfs {

// Pages that a scan reads at once.
inline constexpr uint32_t kFrozenBatchPages = 64;

// The footer of a frozen file.
struct FrozenFileInfo {
  StoreFileId file;
  uint64_t entries = 0;  // tombstones included
  uint64_t tombstones = 0;
  uint32_t pages = 0;
  unsigned bucket_bits = 0;                         // of a HashStore; 0 for a sorted run
  PageIndexKind page_index = PageIndexKind::kTrie;  // of a SortedStore or a sorted run
  bool has_filter = false;                          // of a SortedStore: a file beside this one
  SlotLayout layout = kChunkSlots;
  uint64_t payload_bytes = 0;  // the filter or page index
  uint64_t payload_checksum = 0;
  uint64_t pages_checksum = 0;  // of the checksums of all pages
  friend bool operator==(const FrozenFileInfo&, const FrozenFileInfo&) = default;
};

class FrozenFileWriter {
 public:
  // Creates the file. The writer calls `throttle` before every write. `throttle` and `env` must
  // outlive the writer.
  static Result<std::unique_ptr<FrozenFileWriter>> Create(Env& env, const std::string& directory,
                                                          const StoreFileId& file,
                                                          Throttle& throttle,
                                                          const SlotLayout& layout = kChunkSlots);

  // Removes a file that was not synced, so that a full disk is not filled with such files.
  ~FrozenFileWriter();
  FrozenFileWriter(const FrozenFileWriter&) = delete;
  FrozenFileWriter& operator=(const FrozenFileWriter&) = delete;

  // Appends an entry, or an empty slot.
  Status Append(const SlotEntry& entry);
  Status AppendEmpty();
  // The next slot begins a new page; the rest of the present page stays empty.
  void EndPage() { in_page_ = layout_.slots_per_page(); }
  // Number of slots that the present page has room for; 0 before the first slot.
  size_t room_in_page() const { return layout_.slots_per_page() - in_page_; }
  uint32_t pages() const { return pages_; }  // begun
  uint64_t slots() const { return slots_; }  // appended

  // Ends the file with its filter or trie. Finish fills in `info`'s file, layout, pages and the
  // payload's fields.
  Status Finish(FrozenFileInfo info, ByteView payload);
  Status Sync();
  uint64_t bytes_written() const { return written_; }
  // The same value as FrozenFile::fingerprint. Valid after Finish.
  uint64_t fingerprint() const { return fingerprint_; }

 private:
  FrozenFileWriter(Env& env, const std::string& directory, std::shared_ptr<File> file,
                   const StoreFileId& id, Throttle& throttle, const SlotLayout& layout);
  Result<MutableByteView> NextSlot();
  Status BeginPage();
  Status WriteBuffer();

  Env& env_;
  const std::string directory_;
  const std::shared_ptr<File> file_;
  const StoreFileId id_;
  Throttle& throttle_;
  const SlotLayout layout_;
  bool whole_ = false;
  Bytes buffer_;                // whole pages
  std::string page_checksums_;  // of pages with named slots
  uint64_t pages_checksum_ = 0;
  size_t in_page_;  // slots used in the last page of the buffer
  uint32_t pages_ = 0;
  uint64_t slots_ = 0;
  uint64_t written_ = 0;
  uint64_t fingerprint_ = 0;
};

class FrozenFile {
 public:
  // Opens the file and reads its footer. kNotFound if it is missing; kCorruption if it is not a
  // whole frozen file with this id and layout.
  static Result<std::shared_ptr<const FrozenFile>> Open(Env& env, const std::string& directory,
                                                        const StoreFileId& id,
                                                        const SlotLayout& layout = kChunkSlots);

  const FrozenFileInfo& info() const { return info_; }
  const SlotLayout& layout() const { return info_.layout; }
  const File& file() const { return *file_; }
  // Upper bound of payload_bytes: a filter or trie is smaller than the entries it indexes.
  uint64_t MostPayloadBytes() const { return (uint64_t{info_.pages} + 1) * kPageSize; }
  uint64_t size() const;  // bytes
  // Distinguishes this file from others of the same name, by the checksums of all its pages and its
  // footer.
  uint64_t fingerprint() const;
  // Returns whether a page with hashed slots is exactly as it was written. For named slots the
  // result is always true, because a lookup does not have their checksum.
  bool MayBePage(uint32_t number, ConstPageBytes bytes) const {
    return !layout().hashed() || IsSealedPage(bytes, number, page_seed_);
  }
  // The filter or trie. kCorruption if its checksum is wrong, or if it exceeds `most_bytes`, which
  // is checked before memory is allocated.
  Result<Bytes> ReadPayload(uint64_t most_bytes = UINT64_MAX) const;
  // The last `size` (<= payload_bytes) bytes of the payload. Their checksum is not verified.
  Result<Bytes> ReadPayloadEnd(uint64_t size) const;
  uint64_t payload_offset() const;  // in the file

 private:
  friend class FrozenFileScan;
  FrozenFile(std::shared_ptr<File> file, FrozenFileInfo info)
      : file_(std::move(file)), info_(info), page_seed_(PageSeedOf(info.file)) {}

  const std::shared_ptr<File> file_;  // opened without the page cache, where possible
  const FrozenFileInfo info_;
  const uint64_t page_seed_;
};

// Reads a frozen file's pages from front to back, checking each. Belongs to one thread; the file
// must outlive it. Memory: the buffer, at most kFrozenBatchPages + 1 pages.
class FrozenFileScan {
 public:
  // Reads into a buffer of its own.
  explicit FrozenFileScan(const FrozenFile& file) : FrozenFileScan(file, own_) {}
  // Reads into `buffer`, which may serve several scans in turn and must outlive the scan.
  FrozenFileScan(const FrozenFile& file, AlignedBuffer& buffer);
  // Reads as many pages at once as `pages` has room for, at least one. `pages` must be aligned to
  // pages and outlive the scan; the file must have hashed slots.
  FrozenFileScan(const FrozenFile& file, MutableByteView pages)
      : file_(file),
        buffer_(pages),
        pages_at_once_(static_cast<uint32_t>(pages.size() / kPageSize)) {}
  FrozenFileScan(const FrozenFileScan&) = delete;
  FrozenFileScan& operator=(const FrozenFileScan&) = delete;

  // A page; its bytes are valid until the next call of Next. Next returns nothing after the last
  // page.
  struct Page {
    uint32_t number = 0;
    bool damaged = false;  // the checksum is wrong; `bytes` are meaningless
    ConstPageBytes bytes;
  };
  Result<std::optional<Page>> Next();

 private:
  Status ReadBatch();
  Status ReadAll();
  bool IsDamaged(uint32_t page, ConstPageBytes bytes) const;
  Result<MutableByteView> Read(uint64_t offset, uint64_t size);

  const FrozenFile& file_;
  AlignedBuffer own_;
  MutableByteView buffer_;
  const uint32_t pages_at_once_;
  Bytes checksums_;  // with named slots: of the pages from checksums_first_ on
  uint32_t checksums_first_ = 0;
  uint32_t next_ = 0;
  uint32_t batch_first_ = 0;
  uint32_t batch_end_ = 0;
};

}  // namespace siltfs
