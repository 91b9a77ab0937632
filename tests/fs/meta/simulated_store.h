// Shared by the tests of a store on a simulated device: its paths, and changes to its files.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "fs/rocksdb/rocksdb_store.h"
#include "store/env/files.h"
#include "store/env/sim_env.h"
#include "tests/support/catch.h"

namespace siltfs::testing {

inline constexpr char kStorePath[] = "/kv";
inline constexpr char kLedgerPath[] = "/kv.ledger";

inline KvStoreOptions At(KvStoreOptions::Mode mode) {
  KvStoreOptions options;
  options.path = kStorePath;
  options.ledger_path = kLedgerPath;
  options.mode = mode;
  return options;
}

inline std::string Contents(Env& env, const std::string& path) {
  auto contents = ReadWholeFile(env, path, 64u << 20);
  REQUIRE_OK(contents);
  return *contents;
}

inline std::unique_ptr<File> OpenFile(Env& env, const std::string& path, OpenMode mode) {
  auto file = env.OpenFile(path, {mode});
  REQUIRE_OK(file);
  return std::move(file).value();
}

// Flips bits in place.
inline void Flip(Env& env, const std::string& path, uint64_t offset, uint8_t bits = 0x10) {
  const auto file = OpenFile(env, path, OpenMode::kReadWrite);
  uint8_t byte = 0;
  REQUIRE_OK(ReadExactly(*file, offset, {&byte, 1}));
  byte ^= bits;
  REQUIRE_OK(file->Write(offset, {&byte, 1}));
}

}  // namespace siltfs::testing
