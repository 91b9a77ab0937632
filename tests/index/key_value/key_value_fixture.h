// A key-value store on a simulated device.
#pragma once

#include <memory>

#include "key_value_history.h"
#include "store/env/sim_env.h"
#include "tests/support/catch.h"

namespace siltfs::testing {

struct KeyValueFixture {
  explicit KeyValueFixture(size_t slot_size) : options(TinyKeyValueOptions(slot_size)) {
    REQUIRE_OK(env.CreateDirectory(options.directory));
    REQUIRE_OK(env.SyncDirectory("/"));
  }
  std::unique_ptr<KeyValueStore> Open() {
    auto store = KeyValueStore::Open(env, options);
    REQUIRE_OK(store);
    return std::move(*store);
  }

  SimEnv env;
  KeyValueOptions options;
};

}  // namespace siltfs::testing
