// Flips single bits in RocksDB's files: the store must be refused or be unchanged, and RocksDB,
// which Debian builds with assertions, must not abort the process.
#include "fs/rocksdb/table_check.h"
#include "store/base/checksum.h"
#include "store/base/coding.h"
#include "store/base/random.h"
#include "tests/fs/meta/metadata_test_support.h"
#include "tests/fs/meta/simulated_store.h"

namespace siltfs {
namespace {

using testing::At;
using testing::Contents;
using testing::Flip;
using testing::kLedgerPath;
using testing::kStorePath;
using testing::OpenFile;
using testing::Put;
using Mode = KvStoreOptions::Mode;

constexpr size_t kFooterBytes = 53;

// Returns the path of the only file with this part in its name.
std::string FileNamed(Env& env, const std::string& part) {
  auto entries = env.ListDirectory(kStorePath);
  REQUIRE_OK(entries);
  std::vector<std::string> found;
  for (const DirectoryEntry& entry : *entries) {
    if (entry.name.find(part) != std::string::npos)
      found.push_back(JoinPath(kStorePath, entry.name));
  }
  REQUIRE(found.size() == 1);
  return found[0];
}

// Entries that can be compressed, but not to almost nothing.
testing::Entries SomeEntries() {
  testing::Entries entries;
  Random random(1);
  for (int i = 100; i < 130; ++i) {
    std::string value(60, 'v');
    for (size_t at = 0; at < 25; ++at) value[at] = static_cast<char>(random.Below(256));
    entries.emplace_back("key " + std::to_string(i), value);
  }
  return entries;
}

// A store closed cleanly, with one table.
std::unique_ptr<SimEnv> SmallStore() {
  auto env = std::make_unique<SimEnv>();
  auto store = OpenRocksDbStore(*env, At(Mode::kCreate));
  REQUIRE_OK(store);
  std::vector<Mutation> mutations;
  for (const auto& [key, value] : SomeEntries()) mutations.push_back(Put(key, value));
  REQUIRE_OK((*store)->Write(mutations));
  REQUIRE_OK((*store)->CloseCleanly());
  return env;
}

Result<testing::Entries> ReadAll(const KvStore& store) {
  testing::Entries entries;
  const auto snapshot = store.Snapshot();
  const auto iterator = snapshot->NewIterator();
  for (iterator->Seek(""); iterator->Valid(); iterator->Next()) {
    entries.emplace_back(iterator->key(), iterator->value());
  }
  SILTFS_RETURN_IF_ERROR(iterator->status());
  for (const auto& [key, value] : entries) {
    SILTFS_ASSIGN_OR_RETURN(const auto got, store.Get(key));
    REQUIRE(got == value);
  }
  return entries;
}

// Opens the store, reads everything, and verifies its checksums. Without an error the content must
// be `expected`.
Status LookAt(Env& env, Mode mode, const testing::Entries& expected) {
  SILTFS_ASSIGN_OR_RETURN(const auto store, OpenRocksDbStore(env, At(mode)));
  SILTFS_ASSIGN_OR_RETURN(const testing::Entries entries, ReadAll(*store));
  REQUIRE(entries == expected);
  SILTFS_RETURN_IF_ERROR(store->VerifyChecksums());
  return store->CloseCleanly();
}

// Flips each bit of the file's last `length` bytes in turn and checks the store; for some of the
// bits the store is also opened for writing. Returns the number of flips that were noticed.
size_t FlipEachBit(SimEnv& env, const std::string& path, size_t length) {
  const testing::Entries whole = SomeEntries();
  REQUIRE_OK(LookAt(env, Mode::kReadOnly, whole));
  const size_t size = Contents(env, path).size();
  size_t noticed = 0;
  for (size_t bit = 8 * (size - length); bit < 8 * size; ++bit) {
    INFO("bit " << bit % 8 << " of byte " << bit / 8 << " of " << size << " of " << path);
    const auto mask = static_cast<uint8_t>(1u << bit % 8);
    Flip(env, path, bit / 8, mask);
    const Status seen = LookAt(env, Mode::kReadOnly, whole);
    if (!seen.ok()) {
      REQUIRE_CODE(seen, kCorruption);
      REQUIRE(seen.path().starts_with(kStorePath));
      ++noticed;
    }
    if (bit % 61 == 0) REQUIRE(LookAt(*env.Fork(), Mode::kOpen, whole).code() == seen.code());
    Flip(env, path, bit / 8, mask);
  }
  return noticed;
}

TEST_CASE("A flipped bit in the end of a table is noticed") {
  const auto env = SmallStore();
  REQUIRE(FlipEachBit(*env, FileNamed(*env, ".sst"), 2048) == 2048 * 8);
}

TEST_CASE("A flipped bit in a MANIFEST or in CURRENT is noticed") {
  const auto env = SmallStore();
  for (const char* part : {"MANIFEST", "CURRENT"}) {
    const std::string path = FileNamed(*env, part);
    const size_t bytes = Contents(*env, path).size();
    REQUIRE(FlipEachBit(*env, path, bytes) == bytes * 8);
  }
}

// Without a ledger RocksDB reads the MANIFEST unchecked, and may treat the damage as a torn tail.
TEST_CASE("Without a ledger a flipped bit in a MANIFEST is noticed, or leaves an older store") {
  const auto env = SmallStore();
  REQUIRE_OK(env->RemoveFile(kLedgerPath));
  const std::string path = FileNamed(*env, "MANIFEST");
  const size_t bits = 8 * Contents(*env, path).size();
  for (size_t bit = 0; bit < bits; ++bit) {
    CAPTURE(bit);
    Flip(*env, path, bit / 8, static_cast<uint8_t>(1u << bit % 8));
    const auto store = OpenRocksDbStore(*env, At(Mode::kReadOnly));
    if (store.ok()) {
      const auto entries = ReadAll(**store);
      REQUIRE_OK(entries);
      REQUIRE((entries->empty() || *entries == SomeEntries()));
    } else {
      REQUIRE_CODE(store, kCorruption);
    }
    Flip(*env, path, bit / 8, static_cast<uint8_t>(1u << bit % 8));
  }
}

// --- The check of a table before it is opened.

class Table {
 public:
  Table() : env_(SmallStore()), path_(FileNamed(*env_, ".sst")), whole_(Contents(*env_, path_)) {}

  const std::string& whole() const { return whole_; }
  const std::string& path() const { return path_; }

  // Checks a file with these contents.
  Status Check(std::string_view contents) {
    const auto file = OpenFile(*env_, path_, OpenMode::kReadWrite);
    REQUIRE_OK(file->Truncate(0));
    REQUIRE_OK(file->Write(0, AsBytes(contents)));
    return CheckTable(*file);
  }
  Status CheckWithHandles(std::string handles) {
    handles.resize(40);
    return Check(std::string(whole_).replace(whole_.size() - kFooterBytes + 1, 40, handles));
  }

 private:
  const std::unique_ptr<SimEnv> env_;
  const std::string path_;
  const std::string whole_;
};

std::string Varint(uint64_t value) {
  std::string text;
  for (; value >= 0x80; value >>= 7) text.push_back(static_cast<char>(value | 0x80));
  text.push_back(static_cast<char>(value));
  return text;
}

TEST_CASE("A whole table passes, and a file of another kind is left to RocksDB") {
  Table table;
  REQUIRE_OK(table.Check(table.whole()));
  for (size_t length = 0; length < kFooterBytes; ++length) {
    REQUIRE_OK(table.Check(table.whole().substr(0, length)));
  }
  for (const size_t from_end : {size_t{1}, size_t{12}, kFooterBytes}) {
    std::string other = table.whole();
    other[other.size() - from_end] = 6;  // magic number, format version, type of checksums
    REQUIRE_OK(table.Check(other));
  }
}

TEST_CASE("A table is checked in its footer, its metaindex and its properties") {
  Table table;
  const auto refused = [&table](size_t from_end) {
    std::string damaged = table.whole();
    damaged[damaged.size() - from_end] ^= 0x04;
    const Status checked = table.Check(damaged);
    REQUIRE_CODE(checked, kCorruption);
    REQUIRE(checked.path() == table.path());
    return std::string(checked.cause());
  };
  REQUIRE(refused(12).find("format version 1") != std::string::npos);
  REQUIRE(refused(kFooterBytes + 1).find("names of blocks") != std::string::npos);
  REQUIRE(refused(kFooterBytes + 300).find("properties") != std::string::npos);
}

TEST_CASE("Handles that point outside a table, or do not end, are refused") {
  Table table;
  const uint64_t end = table.whole().size() - kFooterBytes;
  const std::string index = Varint(0) + Varint(10);
  for (const std::string& handle :
       {Varint(end) + Varint(0), Varint(end - 4) + Varint(0), Varint(end - 15) + Varint(11),
        Varint(0) + Varint(end), Varint(0) + Varint(uint64_t{1} << 40),
        Varint(0) + Varint(UINT64_MAX), Varint(UINT64_MAX) + Varint(0),
        Varint(UINT64_MAX) + Varint(UINT64_MAX), Varint(UINT64_MAX - 4) + Varint(10),
        std::string(40, '\xff'), std::string(11, '\x80')}) {
    const Status checked = table.CheckWithHandles(handle + index);
    REQUIRE_CODE(checked, kCorruption);
    REQUIRE(checked.cause().find("outside the table") != std::string::npos);
  }
  // A block as long as the table, with a wrong checksum.
  REQUIRE_CODE(table.CheckWithHandles(Varint(0) + Varint(end - 5) + index), kCorruption);
  REQUIRE_CODE(table.CheckWithHandles(Varint(0) + Varint(0) + index), kCorruption);
}

// Returns the bytes of a table file that consists of an index of one byte, a metaindex with the
// right checksum, and a footer. The footer gives `index_size` as the size of the index.
std::string FileWithMetaindex(const std::string& block, uint64_t index_size = 1) {
  Encoder file;
  file.Zeros(6).Raw(block).U8(0).U32(static_cast<uint32_t>(Checksum(AsBytes(block))));
  std::string handles = Varint(6) + Varint(block.size()) + Varint(0) + Varint(index_size);
  handles.resize(40);
  file.U8(4).Raw(handles).U32(5).U64(0x88e241b785f4cff7);
  return file.Take();
}

TEST_CASE("A malformed metaindex with a right checksum is refused") {
  Table table;
  const std::string name = "rocksdb.properties";
  const std::string one_offset = Encoder().U32(0).U32(1).Take();
  const auto entry = [&](uint64_t shared, uint64_t rest, uint64_t length, std::string value) {
    return Varint(shared) + Varint(rest) + Varint(length) + name + std::move(value) + one_offset;
  };
  // A table without properties is left to RocksDB.
  REQUIRE_OK(table.Check(FileWithMetaindex(one_offset)));
  REQUIRE_CODE(table.Check(FileWithMetaindex(one_offset, 2)), kCorruption);  // the index
  for (const std::string& block :
       {std::string("abc"),                                          // no room for the offset count
        Encoder().U32(2).Take(),                                     // too many offsets
        Encoder().U32(UINT32_MAX).Take(),                            //
        "x" + one_offset,                                            // an entry cut short
        std::string(12, '\xff') + one_offset,                        // a length without an end
        entry(1, name.size(), 2, Varint(0) + Varint(0)),             // shares a missing prefix
        entry(0, UINT64_MAX, 2, Varint(0) + Varint(0)),              // too long
        entry(0, name.size(), UINT64_MAX, Varint(0) + Varint(0)),    //
        entry(0, name.size(), 1, Varint(0) + Varint(0)),             // half a handle
        entry(0, name.size(), 2, Varint(0) + Varint(0)),             // into the metaindex
        entry(0, name.size(), 11, Varint(UINT64_MAX) + Varint(9)),   // outside
        entry(0, name.size(), 11, Varint(0) + Varint(UINT64_MAX))})  //
  {
    REQUIRE_CODE(table.Check(FileWithMetaindex(block)), kCorruption);
  }
  // A valid entry, but in the place of the offsets.
  const std::string too_many =
      Varint(0) + Varint(name.size()) + Varint(2) + name + std::string(2, '\0');
  const Status checked =
      table.Check(FileWithMetaindex(too_many + Encoder().U32(0).U32(1000).Take()));
  REQUIRE_CODE(checked, kCorruption);
  REQUIRE(checked.cause().find("make no sense") != std::string::npos);
}

TEST_CASE("For any footer, only the table's bytes are read") {
  Table table;
  Random random(7);
  for (int round = 0; round < 5000; ++round) {
    std::string handles;
    while (handles.size() < 40) {
      handles.push_back(static_cast<char>(random.OneIn(2) ? random.Below(256) : 0x80));
    }
    REQUIRE_CODE(table.CheckWithHandles(handles), kCorruption);
  }
}

}  // namespace
}  // namespace siltfs
