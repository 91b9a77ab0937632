// Entries in the slots of a lane: records from the client, and outcomes from the daemon.
//
// A record is its length (32 bits), its fields, and the data of its extents. All numbers are
// little-endian. Decoding accepts any bytes, allocates no more than a small multiple of their
// number, and checks that everything lies within them. It does not check whether the values make
// sense (EntryStore does).
//
// Thread-safety: as for plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fs/interface/entry_store.h"
#include "store/base/bytes.h"
#include "store/base/coding.h"
#include "store/base/result.h"

namespace siltfs::transfer {

enum class RecordKind : uint8_t {
  kEntry = 0,
  kLink = 1,             // another name of the inode `number`
  kFinishDirectory = 2,  // the attributes of the directory `number`
};

struct RecordXattr {
  std::string name;
  std::string value;
};

// What the client sends, as it builds it.
struct EntryRecord {
  RecordKind kind = RecordKind::kEntry;
  uint64_t number = 0;
  InodeNumber parent = 0;
  std::string name;
  uint32_t mode = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint64_t device = 0;
  uint64_t size = 0;
  int64_t atime = 0;
  int64_t mtime = 0;
  std::string target;
  // The source's inode number and ctime. Its size and mtime are those of the record.
  std::optional<std::pair<uint64_t, int64_t>> source;
  std::vector<RecordXattr> xattrs;
  struct Extent {
    uint64_t offset = 0;
    uint32_t length = 0;
  };
  std::vector<Extent> extents;
};

// The record without its data.
std::string EncodeRecord(const EntryRecord& record);
// Bytes of a record beyond the texts, attributes and extents in it.
inline constexpr size_t kRecordOverhead = 128;

// A decoded record. The views point into the decoded bytes.
struct DecodedRecord {
  RecordKind kind = RecordKind::kEntry;
  uint64_t number = 0;
  EntryImage image;  // without xattrs and extents
  std::vector<XattrImage> xattrs;
  std::vector<ExtentImage> extents;

  // The image with its xattrs and extents. It is valid as long as this object is not moved.
  EntryImage Image() const;
};

// Decodes exactly `count` records. kInvalidArgument if the bytes are anything else.
Result<std::vector<DecodedRecord>> DecodeRecords(ByteView bytes, size_t count);

// The outcome of one record.
struct Outcome {
  StatusCode code = StatusCode::kOk;
  PutEffect effect = PutEffect::kUnchanged;
  InodeNumber inode = 0;
  std::string cause;
};

// Appends an outcome. The causes get shorter as `room` gets small, so that `left` more outcomes
// always fit.
void EncodeOutcome(const Outcome& outcome, size_t room, size_t left, Encoder& out);
inline constexpr size_t kMinOutcomeBytes = 12;
Result<std::vector<Outcome>> DecodeOutcomes(ByteView bytes, size_t count);

// A name of a directory.
struct ListedName {
  std::string name;
  uint32_t mode = 0;  // type bits
};
// The bytes that a name takes.
inline size_t ListedBytes(std::string_view name) { return 6 + name.size(); }
void EncodeListedName(std::string_view name, uint32_t mode, Encoder& out);
Result<std::vector<ListedName>> DecodeListedNames(ByteView bytes, size_t count);

}  // namespace siltfs::transfer
