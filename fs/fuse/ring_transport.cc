#include "fs/fuse/ring_transport.h"

#include <fmt/format.h>

#include <fstream>
#include <memory>
#include <thread>
#include <utility>

#include "fs/fuse/adaptive_poll.h"
#include "fs/fuse/request_kind.h"
#include "fs/rings/ring_server.h"

namespace siltfs::fuse {
namespace {

Result<std::unique_ptr<RingServer>> MakeServer(const RingTransportOptions& options) {
  SILTFS_ASSIGN_OR_RETURN(const Processors processors, ReadProcessors());
  const auto any_idle = [runnable = std::make_shared<RunnableThreads>(),
                         count = std::thread::hardware_concurrency()] {
    const auto running = runnable->Count();
    return running && *running < count;
  };
  return RingServer::Make({.plan = PlanRings(processors),
                           .workers = options.workers,
                           .pace = PaceOf,
                           .answer = options.answer,
                           .any_idle = any_idle,
                           .failed = options.failed});
}

}  // namespace

RingOffer ReadRingOffer() {
  std::ifstream file(kRingSetting);
  char value = 0;
  if (!file.get(value)) return RingOffer::kNone;
  return value == 'Y' || value == '1' ? RingOffer::kEnabled : RingOffer::kDisabled;
}

Status CheckRings() {
  switch (ReadRingOffer()) {
    case RingOffer::kNone:
      return {StatusCode::kUnsupported,
              "mount option \"io_uring=on\": this kernel has no FUSE over io_uring, which needs "
              "Linux 6.14 or newer; io_uring=auto mounts without it"};
    case RingOffer::kDisabled:
      return {StatusCode::kUnsupported,
              fmt::format("mount option \"io_uring=on\": FUSE over io_uring is disabled on this "
                          "system; as root, write Y to {}, or mount with io_uring=auto",
                          kRingSetting)};
    case RingOffer::kEnabled:
      break;
  }
  const auto trial = KernelRing::Make(0, {0}, kMinRingPayloadBytes);
  if (trial.ok()) return {};
  return {StatusCode::kUnsupported,
          fmt::format("mount option \"io_uring=on\": this process may not use io_uring ({}); "
                      "io_uring=auto mounts without it",
                      trial.status().cause())};
}

RingTransport::RingTransport(RingTransportOptions options) : options_(std::move(options)) {}

RingTransport::~RingTransport() = default;

bool RingTransport::Prepare() {
  if (options_.use == IoUringUse::kOff || server_) return false;
  auto made = MakeServer(options_);
  if (!made.ok()) {
    options_.log->warn("requests come through /dev/fuse, not through io_uring: {}",
                       made.status().ToString());
    return false;
  }
  server_ = std::move(*made);
  return true;
}

bool RingTransport::Fits(size_t payload_bytes) const {
  return server_ && payload_bytes <= server_->payload_bytes();
}

std::optional<size_t> RingTransport::payload_bytes() const {
  if (!server_) return std::nullopt;
  return server_->payload_bytes();
}

void RingTransport::Start(int device) {
  started_ = true;
  server_->Start(device);
}

std::optional<ssize_t> RingTransport::Reply(std::span<const iovec> parts) {
  if (!started_ || !server_->Reply(parts)) return std::nullopt;
  ssize_t size = 0;
  for (const iovec& part : parts) size += static_cast<ssize_t>(part.iov_len);
  return size;
}

bool RingTransport::InUse() const { return started_ && !server_->Refused(); }

void RingTransport::Stop() {
  if (server_) server_->Stop();
}

void RingTransport::Release() {
  started_ = false;
  server_.reset();
}

}  // namespace siltfs::fuse
