// Support for all tests of the value log: a simulated device, and records with bytes derived from
// their number.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "index/key_value/value_log.h"
#include "store/base/random.h"
#include "store/env/sim_env.h"
#include "store/segment/segment_files.h"
#include "tests/support/catch.h"

namespace siltfs::testing {

inline constexpr const char* kLogDirectory = "/values";

inline ChunkName NameOf(uint64_t number) {
  ChunkName name;
  Random random(number * 2 + 1);
  random.Fill(name.bytes);
  return name;
}

inline Bytes BytesOf(uint64_t number, size_t size) {
  Bytes bytes(size);
  Random random(number * 2);
  random.Fill(bytes);
  return bytes;
}

struct Record {
  uint64_t number = 0;
  size_t size = 0;
  Location location;

  ChunkName name() const { return NameOf(number); }
  Bytes bytes() const { return BytesOf(number, size); }
};

inline std::unique_ptr<SimEnv> NewDevice(uint64_t seed = 1) {
  auto env = std::make_unique<SimEnv>(seed);
  REQUIRE_OK(env->CreateDirectory(kLogDirectory));
  REQUIRE_OK(env->SyncDirectory("/"));
  return env;
}

// Small segments and blocks, so that a log has many.
inline ValueLogOptions SmallOptions() {
  ValueLogOptions options;
  options.directory = kLogDirectory;
  options.segment_bytes = 4096;
  options.block_bytes = 512;
  options.open_files = 3;
  return options;
}

inline std::unique_ptr<ValueLog> OpenLog(Env& env, const ValueLogOptions& options) {
  auto log = ValueLog::Open(env, options);
  REQUIRE_OK(log);
  return std::move(*log);
}

inline Record AppendRecord(ValueLog& log, uint64_t number, size_t size) {
  auto location = log.Append(NameOf(number), BytesOf(number, size));
  REQUIRE_OK(location);
  return {number, size, *location};
}

inline void RequireRead(const ValueLog& log, const Record& record) {
  INFO("record " << record.number << " of " << record.size << " bytes in segment "
                 << record.location.segment << ", ordinal " << record.location.ordinal
                 << ", block at " << record.location.block_offset);
  auto bytes = log.Read(record.name(), record.location);
  REQUIRE_OK(bytes);
  REQUIRE((*bytes == record.bytes()));
}

inline void RequireReadAll(const ValueLog& log, const std::vector<Record>& records) {
  for (const Record& record : records) RequireRead(log, record);
}

// Returns a random size, of all magnitudes up to `limit`.
inline size_t RandomSize(Random& random, size_t limit) {
  size_t size = limit;
  for (uint64_t halvings = random.Below(12); halvings > 0; --halvings) size = size / 2 + 1;
  return 1 + random.Below(size);
}

inline std::string FileBytes(Env& env, const std::string& path) {
  auto file = env.OpenFile(path, {.mode = OpenMode::kRead});
  REQUIRE_OK(file);
  auto size = (*file)->Size();
  REQUIRE_OK(size);
  Bytes bytes(*size);
  REQUIRE_OK((*file)->Read(0, bytes));
  return std::string(AsText(bytes));
}

// Writes a file with these bytes, durably.
inline void PutFile(Env& env, const std::string& path, std::string_view bytes) {
  auto opened = env.OpenFile(path, {.mode = OpenMode::kReadWrite});
  if (!opened.ok()) opened = env.OpenFile(path, {.mode = OpenMode::kCreate});
  REQUIRE_OK(opened);
  REQUIRE_OK((*opened)->Truncate(bytes.size()));
  REQUIRE_OK((*opened)->Write(0, AsBytes(bytes)));
  REQUIRE_OK((*opened)->Sync());
  REQUIRE_OK(env.SyncDirectory(path.substr(0, path.rfind('/'))));
}

}  // namespace siltfs::testing
