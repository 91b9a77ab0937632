// Chunks whose names have the same hash in the index, and so share an entry (index/flash/slot.h,
// "hashed slots"). With 64 bits that happens once in years; here the index keeps few bits, and
// nearly all chunks share entries. It may cost reads and space, but never a wrong byte.
#include <filesystem>

#include "index/silt/silt_index.h"
#include "tests/fs/core/garbage_store.h"

namespace siltfs::testing {
namespace {

// A store with an index that distinguishes only 2^bits names.
struct SharingStore : GarbageStore {
  explicit SharingStore(unsigned bits = 8, uint32_t segment_bytes = 64u << 10)
      : GarbageStore(segment_bytes) {
    MakeIndex(bits);
  }
  // Replaces the index of a closed store by an empty one; the next mount fills it.
  void MakeIndex(unsigned bits) {
    const std::string directory = IndexPath(path);
    for (const auto& file : std::filesystem::directory_iterator(directory)) {
      std::filesystem::remove_all(file.path());
    }
    auto index = OpenSiltIndex(env, {.directory = directory,
                                     .partition_bits = 1,
                                     .bucket_bits = 4,
                                     .hash_bits = bits,
                                     .background = false});
    REQUIRE_OK(index);
    REQUIRE_OK((*index)->Close());
  }
  uint64_t IndexEntries() const { return Indexed().size(); }
  // Requires that all files read back now and after a reopening, and that fsck finds nothing.
  void RequireAllFiles() {
    RequireFiles(*fs);
    End();
    RequireSound(env);
    Begin();
    RequireFiles(*fs);
  }
};

}  // namespace

TEST_CASE("chunks that share index entries are stored, found and read back") {
  SharingStore store;
  store.Begin();
  for (uint64_t i = 0; i < 30; ++i) store.WriteRandom(i, 50'000);
  store.RequireAllFiles();
  // The same files again: at worst the chunks are stored again.
  for (uint64_t i = 0; i < 30; ++i) {
    const std::string name = fmt::format("again {}", i);
    store.files[name] = RandomBytes(i, 50'000);
    WriteLargeFile(*store.fs, name, store.files[name]);
  }
  store.RequireAllFiles();
  store.End();
  CHECK(store.IndexEntries() <= 256);
  CHECK(store.Findings() == std::set<std::string>{});
}

TEST_CASE("collections of chunks that share index entries keep every chunk in use") {
  const unsigned bits = GENERATE(8U, 9U, 12U);
  SharingStore store(bits);
  for (uint64_t round = 0; round < 6; ++round) {
    store.Begin();
    for (uint64_t i = 0; i < 12; ++i) store.WriteRandom(round * 100 + i, 40'000);
    // Delete half of the files of this round and of earlier ones.
    std::vector<std::string> names;
    for (const auto& [name, bytes] : store.files) names.push_back(name);
    for (size_t i = round % 2; i < names.size(); i += 2) store.Delete(names[i]);
    store.Collect();
    store.RequireAllFiles();
    if (round % 3 == 2) {
      REQUIRE_OK(store.fs->SyncAll());
      store.fs.reset();  // a crash
    } else {
      store.End();
    }
    store.Begin();
    store.Collect();
    store.RequireAllFiles();
    store.End();
    CHECK(store.Findings() == std::set<std::string>{});
  }
}

TEST_CASE("an index in which chunks share entries can be made again from the segments") {
  SharingStore store;
  store.Begin();
  for (uint64_t i = 0; i < 20; ++i) store.WriteRandom(i, 50'000);
  store.End();
  store.MakeIndex(10);
  store.Begin();
  store.RequireAllFiles();
  for (uint64_t i = 0; i < 20; i += 2) store.Delete(fmt::format("random {}", i));
  store.Collect();
  store.RequireAllFiles();
  store.End();
}

}  // namespace siltfs::testing
