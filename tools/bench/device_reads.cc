#include "tools/bench/device_reads.h"

#include <algorithm>
#include <vector>

#include "store/base/aligned_buffer.h"
#include "store/base/coding.h"
#include "store/base/random.h"
#include "tools/bench/bench_threads.h"
#include "tools/bench/rounds.h"

namespace siltfs {
namespace {

constexpr size_t kWriteBytes = 1U << 20;

uint64_t LoadNumber(ByteView page) {
  Decoder in(page.first(8));
  return in.U64();
}

void StoreNumber(uint64_t number, MutableByteView page) {
  for (size_t i = 0; i < 8; ++i) page[i] = static_cast<uint8_t>(number >> (8 * i));
}

}  // namespace

DeviceReads::DeviceReads(Env& env, const std::string& path, uint64_t size)
    : env_(env), pages_((size + kWriteBytes - 1) / kWriteBytes * (kWriteBytes / kPage)) {
  auto file = env.OpenFile(path, {.mode = OpenMode::kCreate, .direct = true});
  if (!file.ok() && file.status().Is(StatusCode::kUnsupported)) {
    direct_ = false;
    file = env.OpenFile(path, {.mode = OpenMode::kCreate});
  }
  Require(file.status());
  file_ = std::move(*file);
  AlignedBuffer block(kWriteBytes);
  Random random(pages_);
  for (uint64_t page = 0; page < pages_; page += kWriteBytes / kPage) {
    random.Fill(block.view());
    for (size_t i = 0; i < kWriteBytes / kPage; ++i) {
      StoreNumber(page + i, block.view().subspan(i * kPage, kPage));
    }
    Require(file_->Write(page * kPage, block.view()));
  }
  Require(file_->Sync());
}

void DeviceReads::ReadShare(uint64_t count, unsigned depth, uint64_t seed) {
  auto queue = env_.NewReadQueue(depth);
  Require(queue.status());
  Random random(seed);
  const uint64_t most = uint64_t{2} * depth;  // `depth` reads in flight, and as many that wait
  AlignedBuffer pages(most * kPage);
  std::vector<ReadRequest> requests(std::min(most, count));
  uint64_t begun = 0;
  uint64_t wrong = 0;
  Status failure;
  const auto begin = [&](ReadRequest& request) {
    request.file = file_.get();
    request.offset = random.Below(pages_) * kPage;
    ++begun;
  };
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].out = pages.view().subspan(i * kPage, kPage);
    begin(requests[i]);
  }
  (*queue)->ReadAll(requests, [&](ReadRequest& request) {
    if (!request.status.ok() && failure.ok()) failure = request.status;
    wrong += LoadNumber(request.out) == request.offset / kPage ? 0 : 1;
    if (begun == count) return false;
    begin(request);
    return true;
  });
  Require(failure);
  if (wrong > 0) throw BenchFailure(file_->path() + ": reads returned other pages than requested");
}

double DeviceReads::Read(uint64_t count, unsigned threads, unsigned depth, uint64_t seed) {
  if (mechanism_.empty()) {
    const auto queue = env_.NewReadQueue(depth);
    Require(queue.status());
    mechanism_ = (*queue)->mechanism();
  }
  const Stopwatch reading;
  RunThreads(threads, [&](unsigned thread) {
    ReadShare(ShareOf(count, thread, threads), depth, seed * threads + thread);
  });
  return reading.seconds();
}

}  // namespace siltfs
