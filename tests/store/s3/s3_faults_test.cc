// Failures of the service and of the way to it that may pass, and puts whose answers were lost.
#include <algorithm>
#include <thread>

#include "store/s3/backoff.h"
#include "tests/store/s3/s3_test_support.h"

namespace siltfs::testing {
namespace {

TEST_CASE("failures that may pass are repeated") {
  Fixture fixture;
  ObjectStore& store = *fixture.store;
  for (const char* fault :
       {R"("status", "status": 500, "code": "InternalError")",
        R"("status", "status": 503, "code": "SlowDown")",
        R"("status", "status": 429, "code": "TooManyRequests")",
        R"("status", "status": 400, "code": "RequestTimeout")",
        R"("status", "status": 409, "code": "ConditionalRequestConflict")", R"("reset")",
        R"("reset", "effect": true)", R"("html")", R"("truncate", "on": "GET")",
        R"("etag", "on": "GET")", R"("range", "on": "GET")", R"("long", "on": "GET")",
        R"("body", "on": "LIST", "text": "<ListBucketResult>")",
        R"("body", "on": "LIST", "text": "<Error><Code>InternalError</Code></Error>")"}) {
    for (const bool get : {true, false}) {
      INFO(fault << (get ? ", read" : ", list"));
      const bool listing = std::string_view(fault).find("LIST") != std::string_view::npos;
      const bool reading = std::string_view(fault).find("GET") != std::string_view::npos;
      if ((get && listing) || (!get && reading)) continue;
      const uint64_t before = fixture.Retries();
      fixture.Fault(std::string(R"({"times": 2, "fault": )") + fault + "}");
      if (get) {
        Bytes out(100);
        auto got = store.Read("a", fixture.version, 50, out);
        REQUIRE_OK(got);
        CHECK(std::equal(out.begin(), out.end(), fixture.content.begin() + 50));
      } else {
        auto page = store.List("", "", 10);
        REQUIRE_OK(page);
        CHECK(page->objects.size() == 1);
      }
      // libcurl itself repeats one request on a connection that was reset.
      const bool reset = std::string_view(fault).find("reset") != std::string_view::npos;
      CHECK(fixture.Retries() <= before + 2);
      CHECK(fixture.Retries() >= before + (reset ? 1 : 2));
    }
  }
  CHECK(store.Counters().failures == 0);
}

TEST_CASE("a damaged object is read again, and reported if it stays damaged") {
  Fixture fixture;
  for (const char* fault : {"flip", "long", "truncate"}) {
    fixture.Fault(std::string(R"({"times": 2, "on": "GET", "fault": ")") + fault + "\"}");
    auto got = fixture.store->Get("a", 1 << 20, nullptr);
    REQUIRE_OK(got);
    CHECK((*got == fixture.content));
  }
  CHECK(fixture.Retries() == 6);
  fixture.Fault("{\"corrupt\": \"a prefix/\\u00e4+%&/a\"}");
  const auto got = fixture.store->Get("a", 1 << 20, nullptr);
  REQUIRE_CODE(got, kCorruption);
  CheckText(got.status(), "s3://bucket/a prefix/\xC3\xA4+%&/a: the object differs");
  CHECK(fixture.Retries() == 9);
  CHECK(fixture.store->Counters().failures == 1);
}

TEST_CASE("a range that stays wrong is an error with its offset") {
  Fixture fixture;
  fixture.Fault(R"({"times": 100, "on": "GET", "fault": "range"})");
  Bytes out(100);
  const auto got = fixture.store->Read("a", fixture.version, 50, out);
  REQUIRE_CODE(got, kIoError);
  CheckText(got.status(), "/a: the range 51-150 came instead of 50-150 at offset 50");
}

TEST_CASE("a body that was changed on its way is sent again") {
  Fixture fixture;
  fixture.Fault(R"({"fault": "status", "status": 400, "code": "XAmzContentSHA256Mismatch"})");
  fixture.Fault(R"({"fault": "status", "status": 400, "code": "BadDigest"})");
  REQUIRE_OK(fixture.store->Put("b", fixture.content, PutCondition::IfAbsent()));
  CHECK(fixture.Retries() == 2);
}

TEST_CASE("the service verifies the signed hash of the body") {
  // The file changes after its hash was computed, but its size does not.
  class ChangingFile : public BytesFile {
   public:
    ChangingFile() : BytesFile(BytesOfSeed(1, 1000)) {}
    Result<size_t> Read(uint64_t offset, MutableByteView out) const override {
      auto got = BytesFile::Read(offset, out);
      if (reads_++ > 0) out[0] ^= 1;
      return got;
    }

   private:
    mutable int reads_ = 0;
  };
  Fixture fixture;
  const auto put = fixture.store->PutFile("b", ChangingFile(), kAlways);
  REQUIRE_CODE(put, kIoError);
  CheckText(put.status(), "a file of a test: was changed");
  REQUIRE_CODE(fixture.store->Stat("b"), kNotFound);
}

TEST_CASE("a call gives up at its deadline and names the last cause") {
  Fixture fixture;
  fixture.Fault(R"({"times": 10000, "fault": "status", "status": 503, "code": "SlowDown"})");
  const auto got = fixture.store->Get("a", 1 << 20, nullptr);
  REQUIRE_CODE(got, kIoError);
  CheckText(got.status(), "no usable answer from http://127.0.0.1:");
  CheckText(got.status(), "within 60 seconds");
  CheckText(got.status(), "the service answered 503 SlowDown");
  CHECK(fixture.store->Counters().failures == 1);
  // Full jitter: each wait is below a bound that doubles up to 10 seconds.
  std::chrono::nanoseconds bound = std::chrono::milliseconds(100);
  for (const auto wait : fixture.waits) {
    CHECK(wait <= bound);
    bound = std::min<std::chrono::nanoseconds>(bound * 2, std::chrono::seconds(10));
  }
  CHECK(fixture.waits.size() > 7);
}

TEST_CASE("waits between attempts double up to the longest") {
  // Without random numbers, each wait is its bound.
  class EnvWithoutRandomNumbers : public ClockEnv {
   public:
    Status FillRandom(MutableByteView) override {
      return Status(StatusCode::kIoError, "there are no random numbers");
    }
  };
  EnvWithoutRandomNumbers env;
  Backoff backoff(env, std::chrono::milliseconds(100), std::chrono::seconds(3));
  for (const int milliseconds : {100, 200, 400, 800, 1600, 3000, 3000}) {
    CHECK(backoff.Next() == std::chrono::milliseconds(milliseconds));
  }
}

TEST_CASE("transfers that are always broken off do not extend the deadline for ever") {
  Fixture fixture;
  REQUIRE_OK(fixture.store->Put("b", BytesOfSeed(1, 4 << 20), kAlways));
  fixture.Fault(R"({"times": 10000, "on": "GET", "fault": "truncate"})");
  const auto got = fixture.store->Get("b", 8 << 20, nullptr);
  REQUIRE_CODE(got, kIoError);
  CheckText(got.status(), "no usable answer");
}

TEST_CASE("Retry-After is obeyed up to the deadline") {
  Fixture fixture;
  fixture.Fault(R"({"fault": "status", "status": 503, "code": "SlowDown", "retry_after": 7})");
  REQUIRE_OK(fixture.store->Stat("a"));
  REQUIRE(fixture.waits.size() == 1);
  CHECK(fixture.waits[0] == std::chrono::seconds(7));
  fixture.Fault(R"({"fault": "status", "status": 503, "code": "SlowDown", "retry_after": 600})");
  REQUIRE_CODE(fixture.store->Stat("a"), kIoError);
  CHECK(fixture.waits.size() == 1);
}

TEST_CASE("a conditional put whose answer was lost succeeds if its object is there") {
  Fixture fixture;
  int number = 0;
  for (const char* fault :
       {R"("reset", "effect": true)", R"("html", "effect": true)",
        R"("status", "status": 500, "code": "InternalError", "effect": true)"}) {
    INFO(fault);
    const std::string key = "key-" + std::to_string(++number);
    fixture.Fault(std::string(R"({"on": "PUT", "fault": )") + fault + "}");
    auto put = fixture.store->Put(key, AsBytes("mine"), PutCondition::IfAbsent());
    REQUIRE_OK(put);
    std::string version;
    REQUIRE_OK(fixture.store->Get(key, 100, &version));
    CHECK(*put == version);
    fixture.Fault(std::string(R"({"on": "PUT", "fault": )") + fault + "}");
    put = fixture.store->Put(key, AsBytes("mine, again"), PutCondition::IfVersion(version));
    REQUIRE_OK(put);
    REQUIRE_OK(fixture.store->Get(key, 100, &version));
    CHECK(*put == version);
  }
}

TEST_CASE("a conditional put whose answer was lost does not take another object for its own") {
  Fixture fixture;
  // The same content, by another call.
  const auto first = fixture.store->Put("b", AsBytes("content"), PutCondition::IfAbsent());
  REQUIRE_OK(first);
  fixture.Fault(R"({"on": "PUT", "fault": "reset"})");
  REQUIRE_CODE(fixture.store->Put("b", AsBytes("content"), PutCondition::IfAbsent()),
               kAlreadyExists);
  fixture.Fault(R"({"on": "PUT", "fault": "reset"})");
  const auto put = fixture.store->Put("b", AsBytes("content"), PutCondition::IfVersion("another"));
  REQUIRE_CODE(put, kIoError);
  CheckText(put.status(), "it is unknown whether the object was put");
}

TEST_CASE("a connection that was closed while it was idle costs no retry") {
  Fixture fixture;
  for (int i = 0; i < 3; ++i) REQUIRE_OK(fixture.store->Stat("a"));
  // All requests came from one port: the connection was kept.
  const std::string log = fixture.server.Control(R"({"log": true})");
  const size_t end = log.rfind(']', log.rfind(']', log.size() - 3));
  const std::string port = log.substr(log.rfind(' ', end), end - log.rfind(' ', end));
  CHECK(fixture.server.CountRequests(port + "]") == 4);
}

TEST_CASE("requests that stall or trickle end after the stall timeout") {
  Fixture fixture;
  S3Options options = TestOptions(fixture.env, fixture.server);
  options.stall_timeout = std::chrono::milliseconds(200);
  auto store = OpenStore(fixture.env, options);
  for (const char* fault : {"stall", "slow"}) {
    fixture.Fault(std::string(R"({"on": "GET", "fault": ")") + fault + "\"}");
    auto got = store->Get("a", 20 << 20, nullptr);
    REQUIRE_OK(got);
    CHECK((*got == fixture.content));
  }
  CHECK(store->Counters().retries == 2);
}

TEST_CASE("a service that never answers is given up at the deadline") {
  Fixture fixture;
  S3Options options = TestOptions(fixture.env, fixture.server);
  options.deadline = std::chrono::milliseconds(300);
  auto store = OpenStore(fixture.env, options);
  fixture.Fault(R"({"times": 100, "fault": "stall"})");
  const auto stat = store->Stat("a");
  REQUIRE_CODE(stat, kIoError);
  CheckText(stat.status(), "no usable answer");
}

TEST_CASE("a service that is gone is tried until the deadline") {
  Fixture fixture;
  fixture.server.Stop();
  const auto put = fixture.store->Put("b", {}, PutCondition::IfAbsent());
  REQUIRE_CODE(put, kIoError);
  CheckText(put.status(), "no usable answer");
  CheckText(put.status(), "onnect");
  CHECK(fixture.waits.size() > 5);
}

TEST_CASE("a service whose name is not known is tried until the deadline") {
  ClockEnv env;
  S3Options options;
  options.address.bucket = "bucket";
  options.endpoint = Endpoint{.tls = false, .host = "no.such.host.invalid", .port = 0};
  options.variables = LookupIn(TestVariables());
  options.wait = [&env](std::chrono::nanoseconds time) { env.Advance(time); };
  const auto put = OpenStore(env, options)->Put("b", {}, PutCondition::IfAbsent());
  REQUIRE_CODE(put, kIoError);
  CheckText(put.status(), "no usable answer from http://no.such.host.invalid");
  CheckText(put.status(), "no.such.host.invalid");
}

TEST_CASE("an interruption ends calls that wait for an answer or for the next attempt", "[race]") {
  for (const bool waits : {false, true}) {
    Fixture fixture;
    S3Options options = TestOptions(fixture.env, fixture.server);
    if (waits) {
      // Without the interruption, the test would not end in its time.
      options.wait = nullptr;
      options.deadline = std::chrono::hours(2);
    }
    auto store = OpenStore(fixture.env, options);
    fixture.Fault(waits ? R"({"times": 9, "fault": "status", "status": 503, "code": "SlowDown", )"
                          R"("retry_after": 3000})"
                        : R"({"times": 9, "fault": "stall"})");
    Status outcome;
    std::thread caller([&] { outcome = store->Stat("a").status(); });
    while (fixture.server.CountRequests("\"HEAD\"") == 0) std::this_thread::yield();
    store->Interrupt();
    caller.join();
    REQUIRE_CODE(outcome, kInterrupted);
  }
}

TEST_CASE("pages without objects are skipped, and wrong pages are refused") {
  Fixture fixture;
  REQUIRE_OK(fixture.store->Put("b", {}, kAlways));
  fixture.Fault(R"({"on": "LIST", "fault": "empty"})");
  auto page = fixture.store->List("", "a", 10);
  REQUIRE_OK(page);
  REQUIRE(page->objects.size() == 1);
  CHECK(page->objects[0].key == "b");

  const auto listing = [](const std::string& key) {
    return "<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>" + key +
           "</Key><ETag>e</ETag><Size>1</Size></Contents></ListBucketResult>";
  };
  const struct {
    std::string text;
    const char* sentence;
  } cases[] = {{listing("elsewhere/c"), "keys with another prefix"},
               {listing("a prefix/\\u00e4+%&amp;/a"), "not in the order of its keys"}};
  for (const auto& item : cases) {
    fixture.Fault(R"({"times": 10, "on": "LIST", "fault": "body", "text": ")" + item.text + "\"}");
    const auto wrong = fixture.store->List("", "a", 10);
    REQUIRE_CODE(wrong, kIoError);
    CheckText(wrong.status(), item.sentence);
    fixture.Fault(R"({"heal": true})");
  }
}

}  // namespace
}  // namespace siltfs::testing
