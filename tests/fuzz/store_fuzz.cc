// Tests stores with arbitrary metadata in intact RocksDB files. Such a store is checked, mounted,
// read, written to, scrubbed, garbage-collected and repaired. Each of these steps may be refused.
//
// The input: changes of the metadata of a small store, each with its kind, its key and its value.
#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fs/check/check_store.h"
#include "fs/interface/file_system.h"
#include "fs/interface/stats.h"
#include "fs/interface/store_maintenance.h"
#include "fs/open/make_store.h"
#include "fs/open/rebuild_index.h"
#include "fs/open/store_layout.h"
#include "fs/open/store_stats.h"
#include "fs/repair/repair_store.h"
#include "fs/rocksdb/rocksdb_store.h"
#include "store/base/random.h"
#include "store/env/files.h"
#include "store/env/sim_env.h"
#include "tests/fuzz/fuzz_input.h"

namespace siltfs::testing {
namespace {

const std::string kStore = "/store";
constexpr Caller kCaller{.uid = 1000, .gid = 1000};
constexpr uint64_t kCapacity = 256u << 20;
constexpr size_t kMostChanges = 20;
// Limits of a walk through the tree. Without these limits the walk may not end, because arbitrary
// entries can form circles.
constexpr size_t kMostInodes = 200;
constexpr size_t kMostNames = 1000;

template <typename T>
bool Ok(const Result<T>& result) {
  if (!result.ok()) result.status().IgnoreError("what is damaged is refused");
  return result.ok();
}
void Try(Status status) { status.IgnoreError("what is damaged is refused"); }

Result<std::unique_ptr<FileSystem>> Open(Env& env, bool read_only) {
  FileSystemOptions options;
  options.store = kStore;
  options.read_only = read_only;
  options.commit_interval = std::chrono::hours(1);
  return FileSystem::Open(env, options);
}

InodeNumber Write(FileSystem& fs, const std::string& name, ByteView content) {
  const Attributes file = Must(fs.CreateFile(kRootInode, name, 0644, kCaller));
  for (size_t at = 0; at < content.size(); at += 128u << 10) {
    const ByteView piece = content.subspan(at, std::min<size_t>(128u << 10, content.size() - at));
    MustHold(fs.Write(file.inode, at, piece).ok(), "the store is written to");
  }
  fs.ReleaseFile(file.inode);
  fs.Forget(file.inode, 1);
  return file.inode;
}

// Creates an example of everything: large and small files, holes, overlays, links, attributes,
// orphans.
void Fill(FileSystem& fs) {
  Random random(5);
  Bytes large(700'000);
  random.Fill(large);
  const InodeNumber file = Write(fs, "large", large);
  Write(fs, "again", large);
  Write(fs, "small", ByteView(large).first(5000));
  Write(fs, "gone", ByteView(large).first(50'000));
  MustHold(fs.Unlink(kRootInode, "gone").ok(), "a name is removed");
  const InodeNumber directory = Must(fs.MakeDirectory(kRootInode, "d", 0755, kCaller)).inode;
  MustHold(fs.MakeDirectory(directory, "inner", 0755, kCaller).ok(), "a directory is made");
  MustHold(fs.Link(file, directory, "linked").ok(), "a file is linked");
  MustHold(fs.MakeSymlink(directory, "symlink", "../large", kCaller).ok(), "a link is made");
  MustHold(fs.MakeNode(directory, "fifo", 0010644, 0, kCaller).ok(), "a node is made");
  MustHold(fs.SetXattr(file, "user.a", "value", XattrMode::kSet).ok(), "an attribute is set");
  AttributeChange longer;
  longer.size = 2'000'000;
  MustHold(fs.SetAttributes(file, longer).ok(), "a file grows");
  MustHold(fs.SyncAll().ok(), "all is committed");
  // A file that stays in its overlay, because it is never closed; and an open file without a name.
  MustHold(fs.OpenFile(file, false).ok() &&
               fs.Write(file, 300'000, ByteView(large).first(3000)).ok() && fs.Fsync(file).ok(),
           "a file is written over");
  const InodeNumber orphan = Must(fs.MakeTemporaryFile(kRootInode, 0600, kCaller)).inode;
  MustHold(fs.Write(orphan, 0, ByteView(large).first(9000)).ok() && fs.SyncAll().ok(),
           "a file without a name is written");
}

// The store as left by a killed process.
const SimEnv& Template() {
  static const std::unique_ptr<SimEnv> made = [] {
    auto env = std::make_unique<SimEnv>(7);
    MakeStoreOptions options;
    options.path = kStore;
    MustHold(MakeStore(*env, options).ok(), "a store is made");
    auto fs = Must(Open(*env, false));
    Fill(*fs);
    fs.reset();
    return env;
  }();
  return *made;
}

Result<std::unique_ptr<KvStore>> OpenMetadata(Env& env) {
  KvStoreOptions options;
  options.path = MetadataPath(kStore);
  options.ledger_path = LedgerPath(kStore);
  options.mode = KvStoreOptions::Mode::kOpen;
  return OpenRocksDbStore(env, options);
}

using Pairs = std::vector<std::pair<std::string, std::string>>;

Mutation ChangeOne(FuzzInput& input, const Pairs& pairs) {
  const uint64_t what = input.Number(1) % 8;
  const auto& [key, old] = pairs[input.Number(2) % pairs.size()];
  std::string value = old;
  const size_t at = value.empty() ? 0 : input.Number(2) % value.size();
  switch (what) {
    case 0:
    case 1:
    case 2:
    case 3: {  // a number of 1, 2, 4 or 8 bytes
      const size_t width = size_t{1} << what;
      const uint64_t number = input.Number(width);
      for (size_t i = 0; i < width && at + i < value.size(); ++i)
        value[at + i] = static_cast<char>(number >> (8 * i));
      return {key, value};
    }
    case 4:
      return {key, std::nullopt};
    case 5:
      value.replace(at, input.Number(1), AsText(input.Take(input.Number(1))));
      return {key, value};
    case 6:
      return {key, pairs[input.Number(2) % pairs.size()].second};
    default: {  // the value under another key
      std::string other = key;
      const size_t place = 1 + input.Number(1) % (other.size() + 1);
      other.replace(std::min(place, other.size()), input.Number(1) % 9,
                    AsText(input.Take(input.Number(1) % 9)));
      return {other, value};
    }
  }
}

void ChangeMetadata(SimEnv& env, FuzzInput& input) {
  const auto kv = Must(OpenMetadata(env));
  Pairs pairs;
  {
    const auto snapshot = kv->Snapshot();
    const auto at = snapshot->NewIterator();
    for (at->Seek(""); at->Valid(); at->Next()) pairs.emplace_back(at->key(), at->value());
    MustHold(at->status().ok(), "metadata is read");
  }
  std::vector<Mutation> mutations;
  while (!input.empty() && mutations.size() < kMostChanges)
    mutations.push_back(ChangeOne(input, pairs));
  MustHold(kv->Write(mutations).ok(), "metadata is changed");
}

void ReadSome(FileSystem& fs, const Attributes& attributes) {
  Bytes buffer(100'000);
  const uint64_t size = std::min(attributes.size, kMaxFileBytes);
  for (const uint64_t offset : {uint64_t{0}, size / 2, size - std::min<uint64_t>(size, 5000)})
    Ok(fs.Read(attributes.inode, offset, buffer));
  Ok(fs.Seek(attributes.inode, 0, SeekTarget::kHole));
  Ok(fs.Seek(attributes.inode, 0, SeekTarget::kData));
}

// Reads each inode that is reachable by names, once. Returns these inodes.
std::set<InodeNumber> Walk(FileSystem& fs) {
  std::set<InodeNumber> seen{kRootInode};
  std::vector<InodeNumber> waiting{kRootInode};
  while (!waiting.empty() && seen.size() < kMostInodes) {
    const InodeNumber directory = waiting.back();
    waiting.pop_back();
    std::vector<std::string> names;
    Try(fs.ReadDirectory(directory, 0, [&](const DirectoryRecord& record) {
      names.emplace_back(record.name);
      return names.size() < kMostNames;
    }));
    for (const std::string& name : names) {
      if (name == "." || name == "..") continue;
      const auto found = fs.Lookup(directory, name);
      if (!Ok(found)) continue;
      const InodeNumber inode = found->inode;
      if (seen.insert(inode).second) {
        if ((found->mode & 0170000) == 0040000) waiting.push_back(inode);
        if ((found->mode & 0170000) == 0100000) ReadSome(fs, *found);
        if ((found->mode & 0170000) == 0120000) Ok(fs.ReadLink(inode));
        const auto attributes = fs.ListXattrs(inode);
        if (Ok(attributes)) {
          for (const std::string& attribute : *attributes) Ok(fs.GetXattr(inode, attribute));
        }
      }
      fs.Forget(inode, 1);
    }
  }
  return seen;
}

void Change(FileSystem& fs, const std::set<InodeNumber>& inodes) {
  const Bytes some(20'000, 7);
  const auto made = fs.CreateFile(kRootInode, "new", 0644, kCaller);
  if (Ok(made)) {
    Try(fs.Write(made->inode, 0, some));
    Try(fs.Fsync(made->inode));
    fs.ReleaseFile(made->inode);
    fs.Forget(made->inode, 1);
  }
  for (const InodeNumber inode : inodes) {
    if (!fs.OpenFile(inode, false).ok()) continue;
    Try(fs.Write(inode, 100'000, some));
    AttributeChange shorter;
    shorter.size = 150'000;
    Ok(fs.SetAttributes(inode, shorter));
    fs.ReleaseFile(inode);
  }
  Try(fs.Rename(kRootInode, "small", kRootInode, "again", RenameMode::kReplace));
  Try(fs.Unlink(kRootInode, "large"));
  Try(fs.RemoveDirectory(kRootInode, "d"));
  Try(fs.SyncAll());
  Ok(fs.maintenance().CollectGarbage(false));
  Ok(fs.maintenance().Scrub(ScrubMode::kFull));
  Ok(fs.maintenance().Recompress());
  Ok(fs.maintenance().GetStats());
}

void Mount(SimEnv& env) {
  for (const bool close : {false, true}) {
    auto fs = Open(env, false);
    if (!Ok(fs)) continue;
    Change(**fs, Walk(**fs));
    if (close) Try((*fs)->Close());
  }
}

// Repairs the store. If the repair leaves no findings, the next check must find nothing, and the
// store can be mounted.
void Repair(SimEnv& env, RepairMode mode) {
  RepairOptions options;
  options.check.store = kStore;
  options.check.data = true;
  options.mode = mode;
  const auto repaired = RepairStore(env, options);
  if (!Ok(repaired) || repaired->left > 0) return;
  MustHold(Must(CheckStore(env, options.check)).findings == 0, "a repaired store has no findings");
  MustHold(Open(env, false).ok(), "a repaired store is mounted");
  Mount(env);
}

void Use(SimEnv& env) {
  CheckOptions options;
  options.store = kStore;
  options.data = true;
  options.inodes_a_pass = 16;
  Ok(CheckStore(env, options));
  Ok(ReadStoreStats(env, kStore));
  if (const auto fs = Open(env, true); Ok(fs)) {
    Walk(**fs);
    Try((*fs)->Close());
  }
  for (const RepairMode mode : {RepairMode::kSafe, RepairMode::kAll}) Repair(*env.Fork(), mode);
  IndexRebuildOptions rebuild;
  rebuild.store = kStore;
  Ok(RebuildIndex(*env.Fork(), rebuild));
  Mount(env);
  Ok(CheckStore(env, options));
}

}  // namespace

void RunStore(FuzzInput input) {
  const std::unique_ptr<SimEnv> env = Template().Fork();
  env->SetCapacity(kCapacity);
  ChangeMetadata(*env, input);
  Use(*env);
}

// One change of each kind, for some of the keys.
std::vector<Bytes> FuzzSeeds() {
  std::vector<Bytes> seeds{Bytes()};
  for (uint8_t what = 0; what < 8; ++what) {
    for (uint8_t key = 0; key < 40; key += 9)
      seeds.push_back({what, key, 0, key, 0, 0xff, 1, 2, 3, 4, 5, 6, 7, 8});
  }
  return seeds;
}

}  // namespace siltfs::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  siltfs::testing::RunStore(siltfs::testing::FuzzInput(data, size));
  return 0;
}
