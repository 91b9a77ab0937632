#include "fs/rocksdb/log_salvage.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "fs/rocksdb/log_check.h"
#include "store/base/coding.h"

namespace siltfs {
namespace {

constexpr size_t kHeaderBytes = 7;
enum Fragment : uint8_t { kWhole = 1, kFirst = 2, kMiddle = 3, kLast = 4 };
enum Tag : uint8_t { kRemoval = 0, kValue = 1, kNote = 3, kNothing = 13 };

constexpr std::array<uint32_t, 256> MakeCrcTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < table.size(); ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
    table[byte] = crc;
  }
  return table;
}

// The checksum in the form stored in a log.
uint32_t MaskedCrc(ByteView bytes) {
  static constexpr std::array<uint32_t, 256> kTable = MakeCrcTable();
  uint32_t crc = ~0u;
  for (const uint8_t byte : bytes) crc = kTable[(crc ^ byte) & 0xff] ^ (crc >> 8);
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

class LogReader {
 public:
  LogReader(const File& file, uint64_t end, uint64_t synced,
            const std::function<bool(ByteView record)>& visit)
      : file_(file), end_(end), synced_(synced), visit_(visit) {}

  LogSalvage Run() {
    for (uint64_t at = 0; at < end_; at += kLogBlockBytes) {
      Bytes block(std::min<uint64_t>(kLogBlockBytes, end_ - at));
      const auto got = file_.Read(at, block);
      if (got.ok()) {
        block.resize(*got);
      } else {
        got.status().IgnoreError("counts as damaged");
        std::fill(block.begin(), block.end(), uint8_t{0});
      }
      ReadBlock(block, at);
    }
    DropRecord();
    if (pending_begin_ < synced_) result_.lost_bytes += pending_;
    return result_;
  }

 private:
  void ReadBlock(ByteView block, uint64_t offset) {
    while (block.size() >= kHeaderBytes) {
      Decoder header(block);
      const uint32_t crc = header.U32();
      const size_t length = header.U16();
      const uint8_t type = header.U8();
      const size_t whole = kHeaderBytes + length;
      const bool fits = whole <= block.size();
      if (!fits || type == 0) {
        Lose(block.size(), offset);
        return;
      }
      if (MaskedCrc(block.subspan(kHeaderBytes - 1, length + 1)) == crc) {
        Take(type, block.subspan(kHeaderBytes, length), offset);
      } else {
        Lose(whole, offset);
      }
      block = block.subspan(whole);
      offset += whole;
    }
  }

  void Take(uint8_t type, ByteView bytes, uint64_t offset) {
    const bool begins = type == kWhole || type == kFirst;
    if (begins) {
      DropRecord();
      record_offset_ = offset;
      open_ = true;
    }
    if (type < kWhole || type > kLast) return;  // fragments of other types hold no changes
    if (!open_) return Lose(bytes.size(), offset);
    record_.insert(record_.end(), bytes.begin(), bytes.end());
    if (type != kWhole && type != kLast) return;
    // Bytes that were lost before this whole record are not a torn tail.
    result_.lost_bytes += std::exchange(pending_, 0);
    ++result_.records;
    if (!visit_(record_)) result_.lost_bytes += record_.size();
    record_.clear();
    open_ = false;
  }

  // Counts the unfinished record as lost.
  void DropRecord() {
    if (open_) Note(record_.size(), record_offset_);
    record_.clear();
    open_ = false;
  }
  void Lose(size_t bytes, uint64_t offset) {
    DropRecord();
    Note(bytes, offset);
  }
  void Note(size_t bytes, uint64_t offset) {
    if (pending_ == 0) pending_begin_ = offset;
    pending_ += bytes;
  }

  const File& file_;
  const uint64_t end_;
  const uint64_t synced_;
  const std::function<bool(ByteView record)>& visit_;
  Bytes record_;  // the fragments so far of the unfinished record
  uint64_t record_offset_ = 0;
  bool open_ = false;
  uint64_t pending_ = 0;  // bytes lost since the last whole record; may be a torn tail
  uint64_t pending_begin_ = 0;
  LogSalvage result_;
};

std::optional<std::string> ReadText(Decoder& in) {
  const auto length = DecodeVarint(in);
  if (!length) return std::nullopt;
  std::string text(AsText(in.Raw(*length)));
  return in.ok() ? std::optional(std::move(text)) : std::nullopt;
}

}  // namespace

Result<LogSalvage> SalvageLog(const File& file, uint64_t end, uint64_t synced,
                              const std::function<bool(ByteView record)>& visit) {
  SILTFS_ASSIGN_OR_RETURN(const uint64_t size, file.Size());
  return LogReader(file, std::min({end, size, kMostLogBytes}), synced, visit).Run();
}

bool ReadLoggedChanges(ByteView record, const std::function<void(StoredChange change)>& visit) {
  Decoder in(record);
  uint64_t number = in.U64();
  in.U32();  // number of changes
  while (in.ok() && in.remaining() > 0) {
    const uint8_t tag = in.U8();
    if (tag == kNothing) continue;
    auto key = ReadText(in);
    if (!key) return false;
    if (tag == kNote) continue;
    if (tag != kValue && tag != kRemoval) return false;
    StoredChange change{.key = std::move(*key), .number = number++, .value = std::nullopt};
    if (tag == kValue) {
      change.value = ReadText(in);
      if (!change.value) return false;
    }
    visit(std::move(change));
  }
  return in.ok();
}

}  // namespace siltfs
