#include "tests/store/object/object_store_contract.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "store/base/random.h"
#include "store/object/object_store_probe.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr uint64_t kLimit = 8 << 20;

std::string PutText(ObjectStore& store, const std::string& key, std::string_view text,
                    const PutCondition& condition = PutCondition::Always()) {
  auto version = store.Put(key, AsBytes(text), condition);
  REQUIRE_OK(version);
  CHECK_FALSE(version->empty());
  return *version;
}

std::string GetText(ObjectStore& store, const std::string& key, std::string* version = nullptr) {
  auto bytes = store.Get(key, kLimit, version);
  REQUIRE_OK(bytes);
  return std::string(AsText(*bytes));
}

std::string ReadText(ObjectStore& store, const std::string& key, std::string_view version,
                     uint64_t offset, size_t size) {
  Bytes out(size, 0xEE);
  auto got = store.Read(key, version, offset, out);
  REQUIRE_OK(got);
  REQUIRE(*got <= size);
  return std::string(AsText(ByteView(out).first(*got)));
}

std::vector<std::string> Keys(const ObjectPage& page) {
  std::vector<std::string> keys;
  for (const ObjectInfo& object : page.objects) keys.push_back(object.key);
  return keys;
}

std::vector<std::string> ListKeys(ObjectStore& store, const std::string& prefix,
                                  const std::string& after, size_t limit, bool* more) {
  auto page = store.List(prefix, after, limit);
  REQUIRE_OK(page);
  *more = page->more;
  return Keys(*page);
}

void PutAndGet(ObjectStore& store) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{4096}, size_t{1} << 20}) {
    const std::string key = "objects/of-" + std::to_string(size);
    const Bytes content = BytesOfSeed(size, size);
    auto put = store.Put(key, content, PutCondition::Always());
    REQUIRE_OK(put);
    std::string version;
    auto got = store.Get(key, kLimit, &version);
    REQUIRE_OK(got);
    CHECK((*got == content));
    CHECK(version == *put);
    auto info = store.Stat(key);
    REQUIRE_OK(info);
    CHECK(info->key == key);
    CHECK(info->size == size);
    CHECK(info->version == *put);
  }
}

void PutFiles(ObjectStore& store) {
  for (const size_t size : {size_t{0}, size_t{1}, (size_t{3} << 20) - 1}) {
    const std::string key = "files/" + std::to_string(size);
    const Bytes content = BytesOfSeed(7 + size, size);
    auto put = store.PutFile(key, BytesFile(content), PutCondition::IfAbsent());
    REQUIRE_OK(put);
    std::string version;
    auto got = store.Get(key, kLimit, &version);
    REQUIRE_OK(got);
    CHECK((*got == content));
    CHECK(version == *put);
    REQUIRE_CODE(store.PutFile(key, BytesFile(BytesOfSeed(8, 10)), PutCondition::IfAbsent()),
                 kAlreadyExists);
  }
}

void Replace(ObjectStore& store) {
  const std::string first = PutText(store, "a", "first content");
  const std::string second = PutText(store, "a", "second");
  CHECK(first != second);
  CHECK(GetText(store, "a") == "second");
}

void PutIfAbsent(ObjectStore& store) {
  const std::string version = PutText(store, "a", "first", PutCondition::IfAbsent());
  REQUIRE_CODE(store.Put("a", AsBytes("second"), PutCondition::IfAbsent()), kAlreadyExists);
  std::string now;
  CHECK(GetText(store, "a", &now) == "first");
  CHECK(now == version);
  REQUIRE_OK(store.Remove("a"));
  PutText(store, "a", "third", PutCondition::IfAbsent());
  CHECK(GetText(store, "a") == "third");
}

void PutIfVersion(ObjectStore& store) {
  REQUIRE_CODE(store.Put("a", AsBytes("x"), PutCondition::IfVersion("\"of-no-object\"")), kStale);
  const std::string first = PutText(store, "a", "first");
  const std::string second = PutText(store, "a", "second", PutCondition::IfVersion(first));
  CHECK(GetText(store, "a") == "second");
  REQUIRE_CODE(store.Put("a", AsBytes("third"), PutCondition::IfVersion(first)), kStale);
  CHECK(GetText(store, "a") == "second");
  REQUIRE_OK(store.Remove("a"));
  REQUIRE_CODE(store.Put("a", AsBytes("fourth"), PutCondition::IfVersion(second)), kStale);
  REQUIRE_CODE(store.Stat("a"), kNotFound);
}

void ReadRanges(ObjectStore& store) {
  const std::string version = PutText(store, "a", "0123456789");
  for (const std::string& wanted : {version, std::string()}) {
    CHECK(ReadText(store, "a", wanted, 0, 4) == "0123");
    CHECK(ReadText(store, "a", wanted, 3, 4) == "3456");
    CHECK(ReadText(store, "a", wanted, 0, 10) == "0123456789");
    CHECK(ReadText(store, "a", wanted, 8, 4) == "89");
    CHECK(ReadText(store, "a", wanted, 9, 1) == "9");
    CHECK(ReadText(store, "a", wanted, 0, 100) == "0123456789");
    CHECK(ReadText(store, "a", wanted, 10, 4).empty());
    CHECK(ReadText(store, "a", wanted, 1000, 4).empty());
    CHECK(ReadText(store, "a", wanted, 3, 0).empty());
  }
  const std::string empty = PutText(store, "b", "");
  CHECK(ReadText(store, "b", empty, 0, 4).empty());
  CHECK(ReadText(store, "b", "", 0, 4).empty());
}

void ReadVersions(ObjectStore& store) {
  const std::string first = PutText(store, "a", "first content");
  const std::string second = PutText(store, "a", "second content");
  Bytes out(5);
  REQUIRE_CODE(store.Read("a", first, 0, out), kStale);
  CHECK(ReadText(store, "a", second, 0, 6) == "second");
  REQUIRE_OK(store.Remove("a"));
  REQUIRE_CODE(store.Read("a", second, 0, out), kStale);
  REQUIRE_CODE(store.Read("a", "", 0, out), kNotFound);
}

void ReadBlocks(ObjectStore& store) {
  const Bytes content = BytesOfSeed(3, 2 << 20);
  auto version = store.Put("segment", content, PutCondition::IfAbsent());
  REQUIRE_OK(version);
  Random random(4);
  Bytes out(256 << 10);
  for (int i = 0; i < 16; ++i) {
    const uint64_t offset = random.Below(content.size());
    const size_t expected = std::min<size_t>(out.size(), content.size() - offset);
    auto got = store.Read("segment", *version, offset, out);
    REQUIRE_OK(got);
    REQUIRE(*got == expected);
    CHECK(std::equal(out.begin(), out.begin() + static_cast<ptrdiff_t>(expected),
                     content.begin() + static_cast<ptrdiff_t>(offset)));
  }
}

void MissingObjects(ObjectStore& store) {
  Bytes out(5);
  REQUIRE_CODE(store.Get("none", kLimit, nullptr), kNotFound);
  REQUIRE_CODE(store.Read("none", "", 0, out), kNotFound);
  const auto stat = store.Stat("none");
  REQUIRE_CODE(stat, kNotFound);
  CHECK(stat.status().ToString().find("none") != std::string::npos);
  REQUIRE_OK(store.Remove("none"));
}

void LimitOfGet(ObjectStore& store) {
  PutText(store, "a", "0123456789");
  REQUIRE_OK(store.Get("a", 10, nullptr));
  REQUIRE_CODE(store.Get("a", 9, nullptr), kFileTooLarge);
  REQUIRE_CODE(store.Get("a", 0, nullptr), kFileTooLarge);
  PutText(store, "b", "");
  REQUIRE_OK(store.Get("b", 0, nullptr));
}

void Removal(ObjectStore& store) {
  PutText(store, "a", "content");
  PutText(store, "ab", "content");
  REQUIRE_OK(store.Remove("a"));
  REQUIRE_CODE(store.Get("a", kLimit, nullptr), kNotFound);
  REQUIRE_OK(store.Remove("a"));
  CHECK(GetText(store, "ab") == "content");
}

void ListInOrder(ObjectStore& store) {
  bool more = true;
  CHECK(ListKeys(store, "", "", 10, &more).empty());
  CHECK_FALSE(more);
  // In the order of bytes: "-" < "." < "/" < "0" < "A" < "_" < "a".
  const std::vector<std::string> keys = {"a-b", "a.b", "a/b", "a/c/d", "a0",
                                         "aA0", "a_b", "aa",  "b",     "c/a"};
  for (size_t i = 0; i < keys.size(); ++i) {
    PutText(store, keys[keys.size() - 1 - i], std::string(keys.size() - 1 - i, 'x'));
  }
  CHECK(ListKeys(store, "", "", 100, &more) == keys);
  CHECK_FALSE(more);
  auto page = store.List("", "", 100);
  REQUIRE_OK(page);
  REQUIRE(page->objects.size() == keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    CHECK(page->objects[i].size == i);
    auto info = store.Stat(keys[i]);
    REQUIRE_OK(info);
    CHECK(page->objects[i].version == info->version);
  }
}

void ListPrefixes(ObjectStore& store) {
  for (const char* key : {"a/b", "a/c/d", "a/ce", "a/d", "ab", "b/a"}) {
    PutText(store, key, "content");
  }
  bool more = true;
  using Expected = std::vector<std::string>;
  CHECK(ListKeys(store, "a/", "", 100, &more) == Expected{"a/b", "a/c/d", "a/ce", "a/d"});
  CHECK(ListKeys(store, "a/c", "", 100, &more) == Expected{"a/c/d", "a/ce"});
  CHECK(ListKeys(store, "b", "", 100, &more) == Expected{"b/a"});
  CHECK(ListKeys(store, "c", "", 100, &more).empty());
  CHECK(ListKeys(store, "a/", "a/b", 100, &more) == Expected{"a/c/d", "a/ce", "a/d"});
  CHECK(ListKeys(store, "a/", "a/cd", 100, &more) == Expected{"a/ce", "a/d"});
  CHECK(ListKeys(store, "a/", "Z", 100, &more) == Expected{"a/b", "a/c/d", "a/ce", "a/d"});
  CHECK(ListKeys(store, "a/", "b", 100, &more).empty());
  CHECK_FALSE(more);
}

void ListPages(ObjectStore& store) {
  std::vector<std::string> keys;
  for (int i = 100; i < 123; ++i) {
    keys.push_back("log/" + std::to_string(i));
    PutText(store, keys.back(), "content");
  }
  PutText(store, "loh", "content");
  for (const size_t limit : {1, 7, 22, 23, 24}) {
    std::vector<std::string> found;
    bool more = true;
    while (more) {
      const auto page = ListKeys(store, "log/", found.empty() ? "" : found.back(), limit, &more);
      REQUIRE(page.size() <= limit);
      // A page without objects that claims more would make this loop endless.
      REQUIRE((!more || !page.empty()));
      found.insert(found.end(), page.begin(), page.end());
    }
    CHECK(found == keys);
  }
}

void ListChanges(ObjectStore& store) {
  bool more = true;
  PutText(store, "a", "content");
  CHECK(ListKeys(store, "", "", 10, &more) == std::vector<std::string>{"a"});
  PutText(store, "b", "content");
  CHECK(ListKeys(store, "", "", 10, &more) == std::vector<std::string>{"a", "b"});
  REQUIRE_OK(store.Remove("a"));
  CHECK(ListKeys(store, "", "", 10, &more) == std::vector<std::string>{"b"});
}

// Catch2's macros are not thread-safe, so threads only note what they got.
template <typename F>
void InThreads(int count, F run) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&run, i] { run(i); });
  for (std::thread& thread : threads) thread.join();
}

void RaceOfFirstPuts(ObjectStore& store) {
  for (int round = 0; round < 5; ++round) {
    const std::string key = "epoch/" + std::to_string(round);
    std::atomic<int> winner = -1;
    std::atomic<int> won = 0;
    std::atomic<int> other_errors = 0;
    InThreads(8, [&](int i) {
      const auto put = store.Put(key, AsBytes(std::to_string(i)), PutCondition::IfAbsent());
      if (put.ok()) {
        winner = i;
        ++won;
      } else if (!put.status().Is(StatusCode::kAlreadyExists)) {
        ++other_errors;
      }
    });
    CHECK(won == 1);
    CHECK(other_errors == 0);
    CHECK(GetText(store, key) == std::to_string(winner));
  }
}

void RaceOfReplacements(ObjectStore& store) {
  PutText(store, "counter", "0");
  constexpr int kThreads = 4;
  constexpr int kIncrements = 5;
  std::mutex mutex;
  std::string failures;
  const auto failed = [&](const Status& status) {
    const std::lock_guard lock(mutex);
    failures += status.ToString() + "\n";
  };
  InThreads(kThreads, [&](int) {
    for (int done = 0; done < kIncrements;) {
      std::string version;
      const auto now = store.Get("counter", kLimit, &version);
      if (!now.ok()) return failed(now.status());
      const int next = std::stoi(std::string(AsText(*now))) + 1;
      const auto put =
          store.Put("counter", AsBytes(std::to_string(next)), PutCondition::IfVersion(version));
      if (put.ok()) {
        ++done;
      } else if (!put.status().Is(StatusCode::kStale)) {
        return failed(put.status());
      }
    }
  });
  INFO(failures);
  CHECK(failures.empty());
  CHECK(GetText(store, "counter") == std::to_string(kThreads * kIncrements));
}

// Puts, reads and removes objects of one thread. Returns the first failure.
std::string UseAlone(ObjectStore& store, int thread) {
  for (int i = 0; i < 10; ++i) {
    const std::string key = "thread-" + std::to_string(thread) + "/" + std::to_string(i);
    const Bytes content = BytesOfSeed(static_cast<uint64_t>(thread * 100 + i), 20'000);
    const auto put = store.Put(key, content, PutCondition::IfAbsent());
    if (!put.ok()) return put.status().ToString();
    Bytes out(5'000);
    const auto got = store.Read(key, *put, 10'000, out);
    if (!got.ok()) return got.status().ToString();
    if (*got != out.size() || !std::equal(out.begin(), out.end(), content.begin() + 10'000)) {
      return key + " has wrong bytes";
    }
    if (i % 2 == 0) continue;
    const Status removed = store.Remove(key);
    if (!removed.ok()) return removed.ToString();
  }
  return "";
}

void ManyThreads(ObjectStore& store) {
  std::vector<std::string> failures(8);
  InThreads(8,
            [&](int thread) { failures[static_cast<size_t>(thread)] = UseAlone(store, thread); });
  for (const std::string& failure : failures) CHECK(failure == "");
  auto page = store.List("thread-", "", 1000);
  REQUIRE_OK(page);
  CHECK(page->objects.size() == 8 * 5);
}

void Counts(ObjectStore& store) {
  const ObjectStoreCounters before = store.Counters();
  PutText(store, "a", "0123456789");
  PutText(store, "b", "012");
  ReadText(store, "a", "", 2, 3);
  GetText(store, "a");
  REQUIRE_OK(store.Stat("a"));
  REQUIRE_OK(store.List("", "", 10));
  REQUIRE_OK(store.Remove("a"));
  const ObjectStoreCounters after = store.Counters();
  CHECK(after.puts == before.puts + 2);
  CHECK(after.gets == before.gets + 2);
  CHECK(after.stats == before.stats + 1);
  CHECK(after.lists == before.lists + 1);
  CHECK(after.removes == before.removes + 1);
  CHECK(after.sent_bytes == before.sent_bytes + 13);
  // Also the bodies of listings may be counted.
  CHECK(after.received_bytes >= before.received_bytes + 13);
  CHECK(after.failures == before.failures);
}

void Probe(ObjectStore& store) {
  REQUIRE_OK(ProbeObjectStore(store, "probe"));
  REQUIRE_CODE(store.Stat("probe"), kNotFound);
}

void Interruption(ObjectStore& store) {
  PutText(store, "a", "content");
  store.Interrupt();
  Bytes out(5);
  REQUIRE_CODE(store.Put("b", out, PutCondition::Always()), kInterrupted);
  REQUIRE_CODE(store.PutFile("b", BytesFile(out), PutCondition::Always()), kInterrupted);
  REQUIRE_CODE(store.Get("a", kLimit, nullptr), kInterrupted);
  REQUIRE_CODE(store.Read("a", "", 0, out), kInterrupted);
  REQUIRE_CODE(store.Stat("a"), kInterrupted);
  REQUIRE_CODE(store.List("", "", 10), kInterrupted);
  REQUIRE_CODE(store.Remove("a"), kInterrupted);
}

constexpr ObjectStoreCheck kChecks[] = {
    {"objects come back as they were put", PutAndGet},
    {"files become objects", PutFiles},
    {"a put replaces an object", Replace},
    {"a put if absent replaces nothing", PutIfAbsent},
    {"a put if version replaces only this version", PutIfVersion},
    {"ranges are read, and end with the object", ReadRanges},
    {"only the version asked for is read", ReadVersions},
    {"ranges of a segment are read", ReadBlocks},
    {"a missing object is not found", MissingObjects},
    {"a get returns at most its limit", LimitOfGet},
    {"removed objects are gone, and only those", Removal},
    {"a list is in the order of bytes", ListInOrder},
    {"a list has only keys with the prefix, behind a key", ListPrefixes},
    {"a list comes in pages", ListPages},
    {"a list shows changes at once", ListChanges},
    {"one of several first puts succeeds", RaceOfFirstPuts},
    {"replacements lose no update", RaceOfReplacements},
    {"any thread may call", ManyThreads},
    {"calls and bytes are counted", Counts},
    {"the probe finds no fault", Probe},
    {"nothing works after an interruption", Interruption},
};

}  // namespace

std::span<const ObjectStoreCheck> ObjectStoreContract() { return kChecks; }

Result<size_t> BytesFile::Read(uint64_t offset, MutableByteView out) const {
  if (offset >= bytes_.size()) return size_t{0};
  const size_t size = std::min<size_t>(out.size(), bytes_.size() - offset);
  std::copy_n(bytes_.begin() + static_cast<ptrdiff_t>(offset), size, out.begin());
  return size;
}

Bytes BytesOfSeed(uint64_t seed, size_t size) {
  Bytes bytes(size);
  Random(seed).Fill(bytes);
  return bytes;
}

}  // namespace siltfs::testing
