// Readers of a bucket: what the writer keeps for them.
#include <functional>
#include <utility>

#include "fs/shipping/reader_claim.h"
#include "store/base/checksum.h"
#include "store/base/coding.h"
#include "tests/fs/shipping/shipping_bench.h"

namespace siltfs::testing {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

ReaderObject Reader(uint8_t number) {
  ReaderObject reader;
  reader.id[0] = number;
  reader.age = std::chrono::seconds(100);
  reader.host = "reader";
  return reader;
}

TEST_CASE("readers: objects are what was encoded, and damage is found") {
  ReaderObject reader = Reader(7);
  reader.beat = 3;
  reader.reached = uint64_t{1} << 40;
  const std::string bytes = EncodeReader(reader);
  const auto decoded = DecodeReader(AsBytes(bytes));
  REQUIRE_OK(decoded);
  CHECK(decoded->id == reader.id);
  CHECK(decoded->beat == 3);
  CHECK(decoded->reached == reader.reached);
  CHECK(decoded->age == reader.age);
  CHECK(decoded->host == "reader");
  CHECK(ReaderKey(reader.id).starts_with("readers/07000000"));
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    CHECK(DecodeReader(AsBytes(damaged)).status().Is(StatusCode::kCorruption));
    CHECK(DecodeReader(AsBytes(bytes.substr(0, i))).status().Is(StatusCode::kCorruption));
  }
  std::string newer = bytes;
  newer[8] = 2;
  newer.resize(newer.size() - 8);
  Encoder sum;
  sum.U64(Checksum(AsBytes(newer)));
  CHECK(DecodeReader(AsBytes(newer + sum.Take())).status().Is(StatusCode::kNeedsNewer));
}

TEST_CASE("readers: the writer keeps what the slowest reader shows") {
  MemoryObjectStore objects;
  Machine writer(objects, 1);
  REQUIRE_OK(writer.Open());
  REQUIRE_OK(writer.kv->Write({{"a", "1"}}));
  CHECK(!writer.shipper->MayDelete(writer.shipper->Position()));  // the bucket lacks the commit
  REQUIRE_OK(writer.shipper->Ship());
  const uint64_t first = writer.shipper->Position();
  CHECK(writer.shipper->MayDelete(first));
  CHECK(writer.shipper->lag().readers == 0);

  int64_t now = 0;
  ReaderClaim one(objects, Reader(1), [&] { return now; });
  ReaderClaim two(objects, Reader(2), [&] { return now; });
  CHECK(one.lapsed());
  REQUIRE_OK(one.Begin());
  REQUIRE_OK(two.Begin());
  CHECK(!one.lapsed());
  REQUIRE_OK(writer.kv->Write({{"a", "2"}}));
  REQUIRE_OK(writer.shipper->Ship());
  const uint64_t second = writer.shipper->Position();
  CHECK(writer.shipper->MayDelete(first));  // a reader that begins now needs nothing of this
  CHECK(!writer.shipper->MayDelete(second));
  CHECK(writer.shipper->lag().readers == 2);
  CHECK(writer.shipper->lag().slowest_reader == 0);
  REQUIRE_OK(one.Keep(second));
  CHECK(!writer.shipper->MayDelete(second));
  REQUIRE_OK(two.Keep(first));
  CHECK(!writer.shipper->MayDelete(second));
  CHECK(writer.shipper->lag().slowest_reader == first);
  REQUIRE_OK(two.Keep(second));
  CHECK(writer.shipper->MayDelete(second));

  REQUIRE_OK(writer.kv->Write({{"a", "3"}}));
  REQUIRE_OK(writer.shipper->Ship());
  CHECK(!writer.shipper->MayDelete(writer.shipper->Position()));
  REQUIRE_OK(one.End());
  REQUIRE_OK(two.End());
  CHECK(writer.shipper->MayDelete(writer.shipper->Position()));
}

TEST_CASE("readers: if the bucket cannot say which readers there are, nothing is deleted") {
  MemoryObjectStore objects;
  Machine writer(objects, 1);
  REQUIRE_OK(writer.Open());
  REQUIRE_OK(writer.kv->Write({{"a", "1"}}));
  REQUIRE_OK(writer.shipper->Ship());
  int64_t now = 0;
  ReaderClaim reader(objects, Reader(1), [&] { return now; });
  REQUIRE_OK(reader.Begin());
  for (const ObjectCall call : {ObjectCall::kList, ObjectCall::kGet}) {
    ObjectFault fault;
    fault.call = call;
    fault.key_part = "readers/";
    objects.FailCall(fault);
    CHECK(!writer.shipper->MayDelete(writer.shipper->Position()));
    objects.ClearFaults();
  }
  // An object that is no reader's may be one of a newer version.
  REQUIRE_OK(reader.End());
  REQUIRE_OK(objects.Put("readers/other", AsBytes("?"), PutCondition::Always()));
  CHECK(!writer.shipper->MayDelete(writer.shipper->Position()));
  REQUIRE_OK(objects.Remove("readers/other"));
  CHECK(writer.shipper->MayDelete(writer.shipper->Position()));
}

TEST_CASE("readers: a commit that is shipped while the writer looks at them frees nothing") {
  std::function<void()> during_look;
  MemoryObjectStore objects({.wait = [&](ObjectCall call, const std::string& key, auto) {
    if (call == ObjectCall::kGet && key.starts_with(kReaderPrefix) && during_look)
      std::exchange(during_look, nullptr)();
  }});
  Machine writer(objects, 1);
  REQUIRE_OK(writer.Open());
  REQUIRE_OK(writer.kv->Write({{"a", "1"}}));
  REQUIRE_OK(writer.shipper->Ship());
  const uint64_t first = writer.shipper->Position();
  int64_t now = 0;
  ReaderClaim one(objects, Reader(1), [&] { return now; });
  ReaderClaim two(objects, Reader(2), [&] { return now; });
  REQUIRE_OK(one.Begin());
  REQUIRE_OK(one.Keep(first));
  uint64_t second = 0;
  // The list of the readers has been read. Another one begins, and shows the first commit.
  during_look = [&] {
    REQUIRE_OK(two.Begin());
    REQUIRE_OK(two.Keep(first));
    REQUIRE_OK(writer.kv->Write({{"a", "2"}}));
    REQUIRE_OK(writer.shipper->Ship());
    second = writer.shipper->Position();
    REQUIRE_OK(one.Keep(second));
  };
  CHECK(writer.shipper->MayDelete(first));
  REQUIRE(second > first);
  CHECK_FALSE(writer.shipper->MayDelete(second));
  REQUIRE_OK(two.Keep(second));
  CHECK(writer.shipper->MayDelete(second));
}

TEST_CASE("readers: one that is silent for its age is given up, and finds out") {
  MemoryObjectStore objects;
  ReaderWatch watch(objects);
  int64_t now = 5 * kSecond;
  ReaderClaim reader(objects, Reader(1), [&] { return now; });
  REQUIRE_OK(reader.Begin());
  REQUIRE_OK(reader.Keep(9));
  int64_t watched = 0;  // the clock of another machine
  const auto look = [&] {
    const auto view = watch.Look(watched);
    REQUIRE_OK(view);
    return *view;
  };
  CHECK(look().reached == 9);
  watched += 100 * kSecond;
  CHECK(look().readers == 1);
  now += 30 * kSecond;
  CHECK(reader.IsDue());
  CHECK(!reader.lapsed());
  REQUIRE_OK(reader.Keep(9));  // a sign of life
  CHECK(!reader.IsDue());
  watched += 50 * kSecond;
  CHECK(look().readers == 1);
  watched += 101 * kSecond;
  CHECK(look().readers == 0);
  CHECK(objects.Keys().empty());
  // The writer has given it up before its own time was over.
  CHECK(!reader.lapsed());
  CHECK(reader.Keep(10).Is(StatusCode::kStale));
  CHECK(reader.lapsed());
  CHECK(reader.Keep(10).Is(StatusCode::kStale));
  REQUIRE_OK(reader.Begin());
  CHECK(look().reached == 0);
  REQUIRE_OK(reader.Keep(10));
  CHECK(look().reached == 10);
  // It was asleep, and the writer has not looked yet.
  now += 76 * kSecond;
  CHECK(reader.lapsed());
  CHECK(reader.Keep(11).Is(StatusCode::kStale));
}

TEST_CASE("readers: after too many objects, the writer looks again") {
  MemoryObjectStore objects;
  int64_t now = 0;
  ReaderClaim claim(objects, Reader(1), [&] { return now; });
  REQUIRE_OK(claim.Begin());
  REQUIRE_OK(claim.Keep(5));
  const auto key = [](int i) { return fmt::format("{}x{:05}", kReaderPrefix, i); };
  for (int i = 0; i < 10'001; ++i) objects.SetContent(key(i), "x");
  ReaderWatch watch(objects);
  REQUIRE_CODE(watch.Look(now), kCorruption);
  REQUIRE_CODE(watch.Look(now), kCorruption);
  for (int i = 0; i < 10'001; ++i) REQUIRE_OK(objects.Remove(key(i)));
  const auto view = watch.Look(now);
  REQUIRE_OK(view);
  CHECK(view->readers == 1);
  CHECK(view->reached == 5);
}

TEST_CASE("readers: a lost answer does not make a reader lapse") {
  MemoryObjectStore objects;
  int64_t now = 0;
  ReaderClaim reader(objects, Reader(1), [&] { return now; });
  REQUIRE_OK(reader.Begin());
  ObjectFault fault;
  fault.call = ObjectCall::kPut;
  objects.FailCall(fault);
  CHECK(reader.Keep(1).Is(StatusCode::kIoError));
  CHECK(reader.reached() == 0);
  CHECK(!reader.lapsed());
  REQUIRE_OK(reader.Keep(2));
  CHECK(reader.reached() == 2);
}

}  // namespace
}  // namespace siltfs::testing
