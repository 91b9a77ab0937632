// All SHA-1 kernels give the same names for batches as OpenSSL for single chunks.
//
// The input: the lengths of at most 40 messages, and their shared bytes.
#include <vector>

#include "chunker/chunk_namer.h"
#include "chunker/sha1/kernels.h"
#include "tests/fuzz/fuzz_input.h"

namespace siltfs::testing {
namespace {

void Compare(FuzzInput input) {
  static ChunkNamer namer = ChunkNamer::Create({}).value();
  std::vector<size_t> lengths(input.Number(1) % 41);
  for (size_t& length : lengths)
    length = input.Number(1) % 16 == 0 ? input.Number(2) : input.Number(1);
  const ByteView bytes = input.Take(input.remaining());
  if (bytes.empty()) return;
  Bytes pool;
  while (pool.size() < 70'000) pool.insert(pool.end(), bytes.begin(), bytes.end());

  std::vector<ByteView> messages;
  std::vector<ChunkName> expected;
  for (size_t i = 0; i < lengths.size(); ++i) {
    messages.push_back(ByteView(pool).subspan(i, lengths[i]));
    expected.push_back(namer.NameOf(messages.back()));
  }
  for (const Sha1Kernel& kernel : Sha1Kernels()) {
    if (!kernel.runs_here() || !kernel.has_steps()) continue;
    std::vector<ChunkName> names(messages.size());
    Sha1Batch(kernel, messages, names);
    MustHold(names == expected, kernel.name);
  }
}

}  // namespace

std::vector<Bytes> FuzzSeeds() { return {}; }

}  // namespace siltfs::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  siltfs::testing::Compare(siltfs::testing::FuzzInput(data, size));
  return 0;
}
