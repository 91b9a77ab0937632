// The library of chunks: what was put is read again, after a close and after an end without one,
// and no other part of siltfs takes the store for one with files.
#include "fs/library/chunks.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <thread>

#include "fs/check/check_store.h"
#include "fs/interface/file_system.h"
#include "fs/open/make_store.h"
#include "fs/open/rebuild_index.h"
#include "fs/open/store_index.h"
#include "store/env/posix_env.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

using namespace siltfs;
using siltfs::chunks::Error;
using siltfs::chunks::ErrorCode;
using siltfs::chunks::Name;
using siltfs::chunks::Store;
using siltfs::testing::TemporaryDirectory;

namespace {

using Content = std::vector<uint8_t>;

Content RandomContent(size_t size, uint32_t seed) {
  std::mt19937 random(seed);
  Content content(size);
  std::generate(content.begin(), content.end(), [&] { return static_cast<uint8_t>(random()); });
  return content;
}

void Succeeds(const Error& error) {
  INFO(error.message());
  REQUIRE_FALSE(error);
}

std::unique_ptr<Store> Opened(const std::string& directory,
                              const chunks::OpenOptions& options = {}) {
  std::unique_ptr<Store> store;
  Succeeds(Store::Open(directory, store, options));
  return store;
}

std::unique_ptr<Store> Made(const std::string& directory) {
  Succeeds(Store::Make(directory));
  return Opened(directory);
}

Name Put(Store& store, const Content& chunk) {
  Name name;
  Succeeds(store.Put(chunk, name));
  return name;
}

Content Got(Store& store, const Name& name) {
  Content bytes;
  Succeeds(store.Get(name, bytes));
  return bytes;
}

// Cuts the content and puts its chunks.
std::vector<Name> PutContent(Store& store, const Content& content) {
  std::vector<std::span<const uint8_t>> pieces;
  std::span<const uint8_t> rest = content;
  for (const uint32_t length : store.Cut(content)) {
    pieces.push_back(rest.first(length));
    rest = rest.subspan(length);
  }
  REQUIRE(rest.empty());
  std::vector<Name> names(pieces.size());
  Succeeds(store.Put(pieces, names));
  return names;
}

Content GotContent(Store& store, const std::vector<Name>& names) {
  Content content;
  for (const Name& name : names) {
    const Content bytes = Got(store, name);
    content.insert(content.end(), bytes.begin(), bytes.end());
  }
  return content;
}

}  // namespace

TEST_CASE("Chunks are read as they were put, before and after a close") {
  const TemporaryDirectory directory;
  const std::string path = directory / "chunks";
  const Content content = RandomContent(3u << 20, 1);
  std::vector<Name> names;
  {
    const auto store = Made(path);
    names = PutContent(*store, content);
    REQUIRE(GotContent(*store, names) == content);
    Succeeds(store->Close());
  }
  const auto store = Opened(path);
  CHECK(GotContent(*store, names) == content);
  CHECK(store->totals().plain_bytes == content.size());
  Succeeds(store->Close());
}

TEST_CASE("An equal chunk is stored once and has the same name") {
  const TemporaryDirectory directory;
  const auto store = Made(directory / "chunks");
  const Content content = RandomContent(1u << 20, 2);
  const std::vector<Name> first = PutContent(*store, content);
  Content shifted = RandomContent(5000, 3);
  shifted.insert(shifted.end(), content.begin(), content.end());
  const std::vector<Name> second = PutContent(*store, shifted);
  const size_t shared =
      static_cast<size_t>(std::count_if(second.begin(), second.end(), [&](Name n) {
        return std::find(first.begin(), first.end(), n) != first.end();
      }));
  CHECK(shared + 2 >= first.size());
  Succeeds(store->Close());
  const auto again = Opened(directory / "chunks");
  CHECK(again->totals().plain_bytes < content.size() + (200u << 10));
}

TEST_CASE("Chunks that were put before Sync are there after an end without a close") {
  const TemporaryDirectory directory;
  const std::string path = directory / "chunks";
  const Content synced = RandomContent(9000, 4), later = RandomContent(7000, 5);
  Name name;
  {
    const auto store = Made(path);
    name = Put(*store, synced);
    Succeeds(store->Sync());
    Put(*store, later);
  }
  const bool read_only = GENERATE(true, false);
  const auto store = Opened(path, {.read_only = read_only, .report = {}});
  CHECK(Got(*store, name) == synced);
  Name other;
  CHECK(store->Put(later, other).code() == (read_only ? ErrorCode::kReadOnly : ErrorCode::kNone));
  Succeeds(store->Close());
}

TEST_CASE("A name that was never put is not found") {
  const TemporaryDirectory directory;
  const auto store = Made(directory / "chunks");
  Put(*store, RandomContent(100, 6));
  Name unknown;
  unknown.digest[0] = 1;
  unknown.length = 100;
  Content bytes;
  const Error error = store->Get(unknown, bytes);
  CHECK(error.code() == ErrorCode::kNotFound);
  CHECK(error.message().find(unknown.ToHex()) != std::string::npos);
}

TEST_CASE("A damaged chunk is reported and never returned") {
  const TemporaryDirectory directory;
  const std::string path = directory / "chunks";
  std::vector<Name> names;
  {
    const auto store = Made(path);
    names = PutContent(*store, RandomContent(1u << 20, 7));
    Succeeds(store->Close());
  }
  std::string segment;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path + "/segments"))
    if (entry.is_regular_file()) segment = entry.path();
  std::fstream file(segment, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(300000);
  file.write("damage", 6);
  file.close();
  const auto store = Opened(path);
  size_t damaged = 0;
  for (const Name& name : names) {
    Content bytes;
    const Error error = store->Get(name, bytes);
    if (error) CHECK(error.code() == ErrorCode::kCorruption);
    damaged += error ? 1 : 0;
  }
  CHECK(damaged > 0);
  CHECK(damaged < names.size());
}

TEST_CASE("Impossible calls are refused with a code and a sentence") {
  const TemporaryDirectory directory;
  const std::string path = directory / "chunks";
  std::unique_ptr<Store> other;
  CHECK(Store::Open(path, other).code() == ErrorCode::kNotFound);
  CHECK(Store::Make(path, {.chunk_min = 4096, .chunk_avg = 4096}).code() ==
        ErrorCode::kInvalidArgument);
  const auto store = Made(path);
  CHECK(Store::Make(path).code() == ErrorCode::kInUse);
  CHECK(Store::Open(path, other).code() == ErrorCode::kInUse);
  CHECK_FALSE(other);
  Name name;
  CHECK(store->Put(Content(), name).code() == ErrorCode::kInvalidArgument);
  CHECK(store->Put(Content((64u << 10) + 1), name).code() == ErrorCode::kInvalidArgument);
  const Content chunk(10);
  const std::span<const uint8_t> view = chunk;
  CHECK(store->Put({&view, 1}, {}).code() == ErrorCode::kInvalidArgument);
  Succeeds(store->Close());
  CHECK(Store::Make(path).code() == ErrorCode::kNotEmpty);
  Content bytes;
  CHECK(store->Close().code() == ErrorCode::kClosed);
  CHECK(store->Put(chunk, name).code() == ErrorCode::kClosed);
  CHECK(store->Get(name, bytes).code() == ErrorCode::kClosed);
  CHECK(store->Sync().code() == ErrorCode::kClosed);
  CHECK(store->Cut(chunk).empty());
}

TEST_CASE("No other part of siltfs opens a store of chunks, and the library opens no other store") {
  const TemporaryDirectory directory;
  const std::string path = directory / "chunks", files = directory / "files";
  {
    const auto store = Made(path);
    Put(*store, RandomContent(100, 8));
    Succeeds(store->Close());
  }
  const auto env = NewPosixEnv();
  for (const bool read_only : {true, false}) {
    FileSystemOptions options;
    options.store = path;
    options.read_only = read_only;
    REQUIRE_CODE(FileSystem::Open(*env, options), kUnsupported);
  }
  CheckOptions check;
  check.store = path;
  REQUIRE_CODE(CheckStore(*env, check), kUnsupported);
  IndexRebuildOptions rebuild;
  rebuild.store = path;
  REQUIRE_CODE(RebuildIndex(*env, rebuild), kUnsupported);
  REQUIRE_CODE(OpenStoreIndexReadOnly(*env, path), kUnsupported);

  MakeStoreOptions make;
  make.path = files;
  REQUIRE_OK(MakeStore(*env, make));
  std::unique_ptr<Store> store;
  CHECK(Store::Open(files, store).code() == ErrorCode::kWrongContent);
}

TEST_CASE("Several stores and several threads work at the same time") {
  const TemporaryDirectory directory;
  const auto one = Made(directory / "one"), two = Made(directory / "two");
  std::vector<std::thread> threads;
  std::vector<int> right(8);
  for (uint32_t t = 0; t < right.size(); ++t) {
    threads.emplace_back([&, t] {
      Store& store = t % 2 == 0 ? *one : *two;
      for (uint32_t i = 0; i < 100; ++i) {
        const Content chunk = RandomContent(1000 + i, 1000 * (t / 4) + i);
        Name name;
        Content bytes;
        if (!store.Put(chunk, name) && !store.Get(name, bytes) && bytes == chunk) ++right[t];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == std::vector<int>(right.size(), 100));
  Succeeds(one->Close());
  Succeeds(two->Close());
}
