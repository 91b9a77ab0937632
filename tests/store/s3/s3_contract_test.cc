// The contract of object stores, on the server of tests/support/s3_server.py.
#include <algorithm>
#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/store/object/object_store_contract.h"
#include "tests/store/s3/s3_test_support.h"
#include "tests/support/test_scale.h"

namespace siltfs::testing {
namespace {

// The options with a prefix that no other check uses, so that all checks can use one server.
S3Options WithOwnPrefix(S3Options options) {
  static int number = 0;
  options.address.prefix += "/" + std::to_string(++number);
  return options;
}

TEST_CASE("S3ObjectStore keeps the contract of object stores") {
  S3Server server;
  ClockEnv env;
  for (const ObjectStoreCheck& check : ObjectStoreContract()) {
    INFO(check.name);
    check.run(*OpenStore(env, WithOwnPrefix(TestOptions(env, server))));
  }
}

TEST_CASE("S3ObjectStore keeps the contract on a service that wants ETags without quotes") {
  S3Server server({"--plain-etags"});
  ClockEnv env;
  for (const ObjectStoreCheck& check : ObjectStoreContract()) {
    // The first such Put of a store needs two more requests.
    if (std::string_view(check.name) == "calls and bytes are counted") continue;
    INFO(check.name);
    check.run(*OpenStore(env, WithOwnPrefix(TestOptions(env, server))));
  }
}

TEST_CASE("S3ObjectStore keeps the contract without a prefix, and with the bucket in the host") {
  ClockEnv env;
  for (const ObjectStoreCheck& check : ObjectStoreContract()) {
    // These checks differ most in the addresses that they use.
    if (std::string_view(check.name).find("list") == std::string_view::npos) continue;
    INFO(check.name);
    S3Server server({"--bucket-in-host"});
    S3Options options = TestOptions(env, server);
    options.address.prefix = "";
    options.endpoint->host = "localhost";
    options.place = BucketPlace::kHost;
    check.run(*OpenStore(env, options));
    CHECK(server.CountRequests("\"PUT\"") > 0);
  }
}

TEST_CASE("S3ObjectStore keeps the contract on a service that fails every fourth request",
          "[race]") {
  // Faults change the counters, and leave some conditional puts with an unknown outcome, which the
  // tests below examine.
  const std::set<std::string_view> left_out = {
      "calls and bytes are counted", "a put if version replaces only this version",
      "one of several first puts succeeds", "replacements lose no update",
      "the probe finds no fault"};
  S3Server server;
  ClockEnv env;
  for (const ObjectStoreCheck& check : ObjectStoreContract()) {
    if (left_out.contains(check.name)) continue;
    // Threads take the seeded faults in any order. With fewer of them, no call gets four replies
    // with wrong bytes, after which it rightly fails.
    const std::string_view rate =
        std::string_view(check.name) == "any thread may call" ? "0.03" : "0.25";
    for (uint64_t seed = 1; seed <= Share(30); ++seed) {
      INFO(check.name << ", seed " << seed);
      S3Options options = WithOwnPrefix(TestOptions(env, server));
      // Time passes only in waits. No call may give up because the server is slow.
      options.deadline = std::chrono::hours(10);
      auto store = OpenStore(env, options);
      server.Control("{\"random\": " + std::to_string(seed) + ", \"rate\": " + std::string(rate) +
                     "}");
      check.run(*store);
    }
  }
}

// Each thread appends words of its own to one object. After an unknown outcome it looks whether its
// word is there, as every client must.
TEST_CASE("racing replacements with lost answers lose no update and repeat none", "[race]") {
  constexpr int kThreads = 4;
  constexpr int kWords = 6;
  for (uint64_t seed = 1; seed <= Share(30); ++seed) {
    S3Server server;
    ClockEnv env;
    S3Options options = TestOptions(env, server);
    options.deadline = std::chrono::hours(10);
    auto store = OpenStore(env, options);
    REQUIRE_OK(store->Put("words", {}, PutCondition::IfAbsent()));
    server.Control("{\"random\": " + std::to_string(seed) + ", \"rate\": 0.3}");
    std::atomic<int> errors = 0;
    const auto append = [&](const std::string& word) {
      bool unknown = false;
      while (true) {
        std::string version;
        auto text = store->Get("words", 1 << 20, &version);
        if (!text.ok()) return ++errors;
        if (unknown && AsText(*text).find(word) != std::string_view::npos) return 0;
        const std::string longer = std::string(AsText(*text)) + word;
        auto put = store->Put("words", AsBytes(longer), PutCondition::IfVersion(version));
        if (put.ok()) return 0;
        unknown = put.status().Is(StatusCode::kIoError);
        if (!unknown && !put.status().Is(StatusCode::kStale)) return ++errors;
      }
    };
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        for (int i = 0; i < kWords; ++i) {
          append(" " + std::to_string(thread) + "." + std::to_string(i) + ";");
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    server.Control(R"({"heal": true})");
    CHECK(errors == 0);
    auto text = store->Get("words", 1 << 20, nullptr);
    REQUIRE_OK(text);
    CHECK(std::ranges::count(*text, ';') == kThreads * kWords);
  }
}

// Of several clients that put an object if it is absent, the service may accept one. Its own client
// must learn this, also if the answer was lost.
TEST_CASE("racing first puts with lost answers have one winner, which knows it", "[race]") {
  for (uint64_t seed = 1; seed <= Share(50); ++seed) {
    S3Server server;
    ClockEnv env;
    S3Options options = TestOptions(env, server);
    options.deadline = std::chrono::hours(10);
    auto store = OpenStore(env, options);
    server.Control("{\"random\": " + std::to_string(seed) + ", \"rate\": 0.4}");
    std::atomic<int> winners = 0;
    std::atomic<int> winner = -1;
    std::atomic<int> errors = 0;
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 8; ++thread) {
      threads.emplace_back([&, thread] {
        auto put = store->Put("epoch", AsBytes(std::to_string(thread)), PutCondition::IfAbsent());
        if (put.ok()) {
          ++winners;
          winner = thread;
        } else if (!put.status().Is(StatusCode::kAlreadyExists) &&
                   !put.status().Is(StatusCode::kIoError)) {
          ++errors;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    server.Control(R"({"heal": true})");
    CHECK(errors == 0);
    CHECK(winners == 1);
    auto text = store->Get("epoch", 100, nullptr);
    REQUIRE_OK(text);
    CHECK(AsText(*text) == std::to_string(winner));
  }
}

// For other services; tests/store/s3/check_services.sh runs it. The variables SILTFS_TEST_BUCKET
// and SILTFS_TEST_ENDPOINT have the addresses, and credentials come from the usual variables. All
// objects under the prefix are removed. SILTFS_TEST_LEFT_OUT may name checks that are left out,
// each followed by a semicolon.
TEST_CASE("a service keeps the contract of object stores", "[.service]") {
  auto address = ParseBucketUrl(VariableOfProcess("SILTFS_TEST_BUCKET"));
  auto endpoint = ParseEndpoint(VariableOfProcess("SILTFS_TEST_ENDPOINT"));
  REQUIRE_OK(address);
  REQUIRE_OK(endpoint);
  ClockEnv env;
  const std::string left_out = VariableOfProcess("SILTFS_TEST_LEFT_OUT");
  for (const ObjectStoreCheck& check : ObjectStoreContract()) {
    if (left_out.find(std::string(check.name) + ";") != std::string::npos) continue;
    DYNAMIC_SECTION(check.name) {
      S3Options options;
      options.address = *address;
      options.endpoint = *endpoint;
      auto store = OpenStore(env, options);
      const auto remove_all = [&] {
        auto page = store->List("", "", 1000);
        REQUIRE_OK(page);
        for (const ObjectInfo& object : page->objects) REQUIRE_OK(store->Remove(object.key));
      };
      remove_all();
      check.run(*store);
      store = OpenStore(env, options);  // the check may have interrupted the store
      remove_all();
    }
  }
}

}  // namespace
}  // namespace siltfs::testing
