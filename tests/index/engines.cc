#include "engines.h"

#include "index/open_index.h"
#include "index/silt/silt_index.h"

namespace siltfs::testing {
namespace {

Engine Default(std::string name, IndexEngine engine) {
  return {std::move(name), [engine](Env& env, const std::string& directory, bool read_only) {
            return OpenIndex(env,
                             {.engine = engine, .directory = directory, .read_only = read_only});
          }};
}

Engine TinySilt(std::string name, unsigned bucket_bits, uint32_t log_pages, uint32_t batch_pages) {
  return {std::move(name), [=](Env& env, const std::string& directory, bool read_only) {
            return OpenSiltIndex(env, {.directory = directory,
                                       .read_only = read_only,
                                       .bucket_bits = bucket_bits,
                                       .max_log_pages = log_pages,
                                       .write_batch_pages = batch_pages});
          }};
}

}  // namespace

const std::vector<Engine>& Engines() {
  static const std::vector<Engine> engines = {
      Default("map", IndexEngine::kMap),
      Default("silt", IndexEngine::kSilt),
      TinySilt("silt, tables of 32", 3, 8, 1),
      TinySilt("silt, tables of 512, logs of 3 pages", 7, 3, 2),
  };
  return engines;
}

}  // namespace siltfs::testing
