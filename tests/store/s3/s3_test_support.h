// A server, a clock and a store for the tests of S3ObjectStore.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "store/env/posix_env.h"
#include "store/s3/s3_object_store.h"
#include "tests/store/object/object_store_contract.h"
#include "tests/support/catch.h"
#include "tests/support/fault_env.h"
#include "tests/support/s3_server.h"

namespace siltfs::testing {

// The machine, with clocks that a test can advance.
class ClockEnv : public FaultEnv {
 public:
  ClockEnv() : FaultEnv(NewPosixEnv()) {}

  int64_t MonotonicNanoseconds() override {
    return FaultEnv::MonotonicNanoseconds() + ahead_.load();
  }
  void Advance(std::chrono::nanoseconds time) { ahead_ += time.count(); }

 private:
  std::atomic<int64_t> ahead_ = 0;
};

using Variables = std::map<std::string, std::string>;

inline VariableLookup LookupIn(Variables variables) {
  return [variables = std::move(variables)](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::string() : found->second;
  };
}

inline Variables TestVariables() {
  return {{"AWS_ACCESS_KEY_ID", "test-key"}, {"AWS_SECRET_ACCESS_KEY", "test-secret"}};
}

// Options for the bucket of the server. Waits between attempts take no time, but advance the clock.
inline S3Options TestOptions(ClockEnv& env, const S3Server& server) {
  S3Options options;
  options.address = {.bucket = "bucket", .prefix = "a prefix/\xC3\xA4+%&"};
  options.endpoint = Endpoint{.tls = false, .host = "127.0.0.1", .port = server.port()};
  options.variables = LookupIn(TestVariables());
  options.wait = [&env](std::chrono::nanoseconds time) { env.Advance(time); };
  return options;
}

inline std::unique_ptr<S3ObjectStore> OpenStore(Env& env, S3Options options) {
  auto store = S3ObjectStore::Open(env, std::move(options));
  REQUIRE_OK(store);
  return std::move(*store);
}

inline const PutCondition kAlways = PutCondition::Always();

// The text of a failure must have this part.
inline void CheckText(const Status& status, std::string_view part) {
  INFO(status.ToString());
  CHECK(status.ToString().find(part) != std::string::npos);
}

// A server, and a store on it with the object "a", whose content is `content`.
struct Fixture {
  explicit Fixture(const std::vector<std::string>& arguments = {}) : server(arguments) {
    S3Options options = TestOptions(env, server);
    options.wait = [this](std::chrono::nanoseconds time) {
      waits.push_back(time);
      env.Advance(time);
    };
    Open(options);
  }

  void Open(const S3Options& options) {
    store = OpenStore(env, options);
    auto put = store->Put("a", content, kAlways);
    REQUIRE_OK(put);
    version = *put;
  }

  std::string Fault(const std::string& command) { return server.Control(command); }
  uint64_t Retries() const { return store->Counters().retries; }

  S3Server server;
  ClockEnv env;
  std::vector<std::chrono::nanoseconds> waits;
  std::unique_ptr<S3ObjectStore> store;
  const Bytes content = BytesOfSeed(1, 10'000);
  std::string version;
};

}  // namespace siltfs::testing
