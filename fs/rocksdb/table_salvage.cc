#include "fs/rocksdb/table_salvage.h"

#include <algorithm>
#include <utility>

#include "fs/rocksdb/table_check.h"

namespace siltfs {
namespace {

// Tables stay far below this size, because RocksDB begins a new table after some megabytes
// (rocksdb_store.cc). A longer file is crafted to keep its reader busy.
constexpr uint64_t kMostTableBytes = uint64_t{64} << 20;

constexpr size_t kBufferBytes = 1u << 20;
constexpr size_t kPageBytes = 4096;
// After damage, a block longer than this is not found. Only a block with an incompressible value of
// 64 KiB can be longer.
constexpr size_t kMostSought = 96u << 10;
static_assert(kBufferBytes > 2 * kMostBlockBytes);

// Reads into `out`; unreadable pages are filled with zeros.
void ReadWhatCan(const File& file, uint64_t offset, MutableByteView out) {
  const auto got = file.Read(offset, out);
  if (got.ok()) return;
  got.status().IgnoreError("other pages may be readable");
  for (size_t at = 0; at < out.size(); at += kPageBytes) {
    const MutableByteView page = out.subspan(at, std::min(kPageBytes, out.size() - at));
    const auto read = file.Read(offset + at, page);
    if (read.ok()) continue;
    read.status().IgnoreError("counts as damaged");
    std::fill(page.begin(), page.end(), uint8_t{0});
  }
}

}  // namespace

Result<std::unique_ptr<TableSalvage>> TableSalvage::Open(Env& env, const std::string& path) {
  SILTFS_ASSIGN_OR_RETURN(auto file, env.OpenFile(path, {.mode = OpenMode::kRead}));
  SILTFS_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  std::unique_ptr<TableSalvage> table(
      new TableSalvage(std::move(file), std::min(size, kMostTableBytes)));
  table->ReadBlock();
  return table;
}

TableSalvage::TableSalvage(std::unique_ptr<File> file, uint64_t size)
    : file_(std::move(file)), size_(size), changes_expected_(CountInTable(*file_)) {}

void TableSalvage::Next() {
  ++changes_read_;
  if (++position_ == changes_.size()) ReadBlock();
}

void TableSalvage::ReadBlock() {
  std::optional<StoredChange> last;
  if (!changes_.empty()) last = std::move(changes_.back());
  changes_.clear();
  position_ = 0;
  for (; at_ < size_ && changes_.empty();) {
    const ByteView window = Window();
    auto found =
        FindDataBlock(in_step_ ? window : window.first(std::min(window.size(), kMostSought)));
    const bool follows =
        found && !found->changes.empty() && (!last || IsBefore(*last, found->changes.front()));
    if (follows) {
      changes_ = std::move(found->changes);
      at_ += found->bytes;
      in_step_ = true;
      return;
    }
    const size_t other = in_step_ ? FindAnyBlock(window) : 0;
    if (other > 0) {
      Pass(other);
      continue;
    }
    in_step_ = false;
    ++at_;
    ++lost_bytes_;
  }
}

void TableSalvage::Pass(size_t bytes) {
  const auto count = CountInProperties(Window().first(bytes - kBlockTrailerBytes));
  if (count) changes_expected_ = count;
  at_ += bytes;
}

ByteView TableSalvage::Window() {
  const uint64_t wanted = std::min<uint64_t>(kMostBlockBytes, size_ - at_);
  if (at_ < buffer_offset_ || at_ + wanted > buffer_offset_ + buffer_.size()) Fill();
  return ByteView(buffer_).subspan(at_ - buffer_offset_, wanted);
}

void TableSalvage::Fill() {
  buffer_offset_ = at_;
  buffer_.assign(std::min<uint64_t>(kBufferBytes, size_ - at_), 0);
  ReadWhatCan(*file_, at_, buffer_);
}

}  // namespace siltfs
