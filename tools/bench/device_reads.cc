#include "tools/bench/device_reads.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "store/base/aligned_buffer.h"
#include "store/base/coding.h"
#include "store/base/random.h"
#include "store/env/files.h"
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

Status DeviceReads::Open(const std::string& path, OpenMode mode) {
  auto file = env_.OpenFile(path, {.mode = mode, .direct = true});
  if (!file.ok() && file.status().Is(StatusCode::kUnsupported)) {
    direct_ = false;
    file = env_.OpenFile(path, {.mode = mode});
  }
  if (!file.ok()) return std::move(file).status();
  files_.push_back(std::move(*file));
  return Status::Ok();
}

DeviceReads::DeviceReads(Env& env, const std::string& path, uint64_t size)
    : env_(env),
      pages_((size + kWriteBytes - 1) / kWriteBytes * (kWriteBytes / kPage)),
      numbered_(true) {
  Require(Open(path, OpenMode::kCreate));
  ends_.push_back(pages_);
  File& file = *files_.front();
  AlignedBuffer block(kWriteBytes);
  Random random(pages_);
  for (uint64_t page = 0; page < pages_; page += kWriteBytes / kPage) {
    random.Fill(block.view());
    for (size_t i = 0; i < kWriteBytes / kPage; ++i) {
      StoreNumber(page + i, block.view().subspan(i * kPage, kPage));
    }
    Require(file.Write(page * kPage, block.view()));
  }
  Require(file.Sync());
}

std::unique_ptr<DeviceReads> DeviceReads::OfFilesIn(Env& env, const std::string& directory) {
  std::unique_ptr<DeviceReads> reads(new DeviceReads(env));
  reads->OpenAllIn(directory);
  // A merge may write to the files meanwhile, so each size is read once.
  struct SizedFile {
    uint64_t pages;
    std::unique_ptr<File> file;
  };
  std::vector<SizedFile> files;
  for (auto& file : reads->files_) {
    const auto size = file->Size();
    Require(size.status());
    if (*size >= kPage) files.push_back({*size / kPage, std::move(file)});
  }
  std::ranges::sort(files, std::ranges::greater(), &SizedFile::pages);
  if (files.size() > kMostFiles) files.erase(files.begin() + kMostFiles, files.end());
  reads->files_.clear();
  for (auto& [pages, file] : files) {
    reads->pages_ += pages;
    reads->ends_.push_back(reads->pages_);
    reads->files_.push_back(std::move(file));
  }
  return reads->pages_ > 0 ? std::move(reads) : nullptr;
}

void DeviceReads::OpenAllIn(const std::string& directory) {
  const auto entries = env_.ListDirectory(directory);
  Require(entries.status());
  for (const DirectoryEntry& entry : *entries) {
    const std::string path = JoinPath(directory, entry.name);
    if (entry.type == FileType::kDirectory) {
      OpenAllIn(path);
      continue;
    }
    const Status opened = Open(path, OpenMode::kRead);
    // A merge may have removed it.
    if (!opened.Is(StatusCode::kNotFound)) Require(opened);
  }
}

void DeviceReads::Aim(uint64_t page, ReadRequest& request) const {
  const auto file = std::upper_bound(ends_.begin(), ends_.end(), page) - ends_.begin();
  const uint64_t begin = file == 0 ? 0 : ends_[static_cast<size_t>(file) - 1];
  request.file = files_[static_cast<size_t>(file)].get();
  request.offset = (page - begin) * kPage;
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
    Aim(random.Below(pages_), request);
    ++begun;
  };
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].out = pages.view().subspan(i * kPage, kPage);
    begin(requests[i]);
  }
  (*queue)->ReadAll(requests, [&](ReadRequest& request) {
    if (!request.status.ok() && failure.ok()) failure = request.status;
    wrong += !numbered_ || LoadNumber(request.out) == request.offset / kPage ? 0 : 1;
    if (begun == count) return false;
    begin(request);
    return true;
  });
  Require(failure);
  if (wrong > 0)
    throw BenchFailure(files_.front()->path() + ": reads returned other pages than requested");
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
