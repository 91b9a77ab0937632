#include "tools/bench/chunker_data.h"

#include <algorithm>

#include "store/base/random.h"
#include "store/env/posix_env.h"
#include "tools/bench/bench_threads.h"

namespace siltfs {

Bytes ReadForBench(const std::string& path) {
  const std::unique_ptr<Env> env = NewPosixEnv();
  const auto file = env->OpenFile(path, {.mode = OpenMode::kRead});
  Require(file.status());
  const Result<uint64_t> size = (*file)->Size();
  Require(size.status());
  Bytes bytes(*size);
  constexpr size_t kReadBytes = 16U << 20;
  for (size_t offset = 0; offset < bytes.size();) {
    const size_t count = std::min(kReadBytes, bytes.size() - offset);
    const Result<size_t> got = (*file)->Read(offset, MutableByteView(bytes).subspan(offset, count));
    Require(got.status());
    if (*got == 0) throw BenchFailure(path + ": shorter than it was");
    offset += *got;
  }
  return bytes;
}

Bytes RandomForBench(uint64_t size, uint64_t seed) {
  Bytes bytes(size);
  Random(seed).Fill(bytes);
  return bytes;
}

ChunkerParameters ParametersForBench(uint32_t avg, uint64_t polynomial) {
  const Result<RabinPolynomial> parsed = RabinPolynomial::Parse(polynomial);
  Require(parsed.status());
  const ChunkerParameters parameters = ChunkerParameters::Proportional(avg, *parsed);
  Require(parameters.Validate());
  return parameters;
}

}  // namespace siltfs
