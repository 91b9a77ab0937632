#include "tests/fs/check/checked_store.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "fs/open/store_layout.h"
#include "fs/records/schema.h"
#include "fs/rocksdb/rocksdb_store.h"
#include "store/superblock/superblock.h"
#include "tests/fs/core/directory_tree.h"
#include "tests/support/catch.h"
#include "tests/support/hex.h"
#include "tests/support/sha1_collisions.h"

namespace siltfs::testing {
namespace {

MakeStoreOptions OptionsOf(IndexEngine engine) {
  MakeStoreOptions options;
  options.index_engine = engine;
  options.index_memory = 4u << 20;
  return options;
}

// A store after FillAndClose.
struct Filled {
  DirectoryTree tree;
  InodeNumber directory = 0;
  InodeNumber inner = 0;
  InodeNumber small = 0;
  InodeNumber large = 0;
  InodeNumber linked = 0;
};

}  // namespace

Codes CheckOutcome::codes() const {
  Codes codes;
  for (const Finding& finding : findings) codes.insert(finding.code);
  return codes;
}

std::string CheckOutcome::ToString() const {
  std::string text;
  for (const Finding& finding : findings) {
    text += fmt::format("{}: {} (inode {}, offset {}): {}\n", finding.code, finding.path,
                        finding.inode.value_or(0), finding.offset.value_or(0), finding.message);
  }
  return text;
}

void RequireCodes(const CheckOutcome& outcome, const Codes& expected) {
  INFO(outcome.ToString());
  REQUIRE(outcome.codes() == expected);
}

CheckedStore::CheckedStore(IndexEngine engine, uint32_t segment_bytes)
    : engine_(engine), segment_bytes_(segment_bytes), fixture_(OptionsOf(engine)) {
  auto state = ReadSuperblock(fixture_.env(), path());
  REQUIRE_OK(state);
  state->superblock.segment_bytes = segment_bytes;
  REQUIRE_OK(WriteSuperblock(fixture_.env(), path(), state->superblock));
}

void CheckedStore::Fill() {
  FileSystem& files = fixture_.Open();
  small = WriteFile(files, "small", RandomBytes(1, 100));
  large = WriteLargeFile(files, "large", RandomBytes(2, 1'000'000));
  WriteLargeFile(files, "copy", RandomBytes(2, 1'000'000));
  linked = WriteFile(files, "linked", RandomBytes(3, 30'000));
  REQUIRE_OK(files.SetXattr(linked, "user.one", "1", XattrMode::kSet));
  REQUIRE_OK(files.SetXattr(linked, "user.two", "", XattrMode::kSet));
  inner = MakeDir(files, kRootInode, "moved");
  directory = MakeDir(files, kRootInode, "directory");
  // Move it below a directory with a higher number than its own.
  REQUIRE_OK(files.Rename(kRootInode, "moved", directory, "inner", RenameMode::kReplace));
  auto link = files.Link(linked, directory, "link");
  REQUIRE_OK(link);
  files.Forget(linked, 1);
  MakeFile(files, directory, "empty");
  auto symlink = files.MakeSymlink(inner, "symlink", "../empty", kCaller);
  REQUIRE_OK(symlink);
  files.Forget(symlink->inode, 1);
  WriteFile(files, "collision 1", FromHex(kShattered1));
  WriteFile(files, "collision 2", FromHex(kShattered2));
  const InodeNumber sparse = WriteFile(files, "sparse", RandomBytes(4, 10'000));
  REQUIRE_OK(files.OpenFile(sparse, false));
  REQUIRE_OK(files.Write(sparse, 5'000'000, RandomBytes(5, 10'000)));
  files.ReleaseFile(sparse);
  const InodeNumber cut = WriteFile(files, "cut", RandomBytes(6, 200'000));
  AttributeChange change;
  change.size = 77'777;
  REQUIRE_OK(files.SetAttributes(cut, change));
  WriteFile(files, "removed", RandomBytes(7, 50'000));
  REQUIRE_OK(files.Unlink(kRootInode, "removed"));
  REQUIRE_OK(files.SyncAll());
}

void CheckedStore::FillAndClose() {
  // Filling is slow: fill once for each kind of store and copy the result.
  static std::map<std::pair<IndexEngine, uint32_t>, Filled> filled;
  const auto [found, first] = filled.try_emplace({engine_, segment_bytes_});
  Filled& copy = found->second;
  if (first) {
    Fill();
    fixture_.Close();
    copy = {ReadTree(path()), directory, inner, small, large, linked};
    return;
  }
  WriteTree(path(), copy.tree);
  directory = copy.directory;
  inner = copy.inner;
  small = copy.small;
  large = copy.large;
  linked = copy.linked;
}

CheckOutcome CheckedStore::Check(bool data) {
  CheckOptions options;
  options.data = data;
  return Check(std::move(options));
}

CheckOutcome CheckedStore::Check(CheckOptions options) {
  CheckOutcome outcome;
  options.store = path();
  options.on_finding = [&outcome](const Finding& finding) { outcome.findings.push_back(finding); };
  const DirectoryTree before = ReadTree(path());
  auto report = CheckStore(fixture_.env(), options);
  const bool unchanged = ReadTree(path()) == before;
  REQUIRE(unchanged);
  REQUIRE_OK(report);
  outcome.report = *report;
  REQUIRE(outcome.report.findings == outcome.findings.size());
  return outcome;
}

void CheckedStore::EditMetadata(const std::function<void(KvStore& kv)>& edit) {
  auto kv = OpenRocksDbStore(fixture_.env(), {.path = MetadataPath(path())});
  REQUIRE_OK(kv);
  edit(**kv);
  REQUIRE_OK((*kv)->CloseCleanly());
}

void CheckedStore::Put(const std::string& key, const std::string& value) {
  EditMetadata([&](KvStore& kv) { REQUIRE_OK(kv.Write({{key, value}})); });
}

void CheckedStore::Remove(const std::string& key) {
  EditMetadata([&](KvStore& kv) { REQUIRE_OK(kv.Write({{key, std::nullopt}})); });
}

void CheckedStore::EditInode(InodeNumber inode,
                             const std::function<void(InodeRecord& record)>& edit) {
  EditMetadata([&](KvStore& kv) {
    auto value = kv.Get(InodeKey(inode));
    REQUIRE_OK(value);
    REQUIRE(*value);
    auto record = InodeRecord::Decode(**value);
    REQUIRE_OK(record);
    edit(*record);
    REQUIRE_OK(kv.Write({{InodeKey(inode), record->Encode()}}));
  });
}

void CheckedStore::Flip(const std::string& file, uint64_t offset) {
  std::string bytes = ReadText(file);
  REQUIRE(offset < bytes.size());
  bytes[offset] = static_cast<char>(~bytes[offset]);
  WriteText(file, bytes);
}

}  // namespace siltfs::testing
