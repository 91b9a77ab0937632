// The rings of a mount (fs/rings), from the kernel's offer at INIT to the end of the connection.
//
// Rings are made when the kernel offers FUSE over io_uring, before the offer is accepted. After
// acceptance, the kernel holds back all requests until the rings are registered. If it refuses
// them, requests arrive through /dev/fuse. siltfs never changes the kernel's setting kRingSetting.
//
// Thread-safety: Reply and InUse may be called from any thread. Prepare, Fits and Start belong to
// the thread that answers INIT, before any other request; Stop and Release to the thread that
// called FuseBinding::Serve. Ownership: see RingServer.
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include <spdlog/logger.h>

#include "fs/fuse/mount_options.h"
#include "store/base/bytes.h"
#include "store/base/status.h"

namespace siltfs::fuse {

class RingServer;

// "Y" if the kernel offers FUSE over io_uring; absent if it cannot.
inline constexpr const char* kRingSetting = "/sys/module/fuse/parameters/enable_uring";

enum class RingOffer : uint8_t { kNone, kDisabled, kEnabled };
RingOffer ReadRingOffer();

// OK if mounts can use rings; otherwise kUnsupported with one sentence that says what to do.
Status CheckRings();

struct RingTransportOptions {
  IoUringUse use = IoUringUse::kAuto;
  unsigned workers = 0;
  // See RingServerOptions.
  std::function<void(MutableByteView message, MutableByteView reply_area)> answer;
  std::function<void(const Status& cause)> failed;
  std::shared_ptr<spdlog::logger> log;
};

class RingTransport {
 public:
  explicit RingTransport(RingTransportOptions options);
  ~RingTransport();
  RingTransport(const RingTransport&) = delete;
  RingTransport& operator=(const RingTransport&) = delete;

  // Makes the rings. False if they are not wanted or cannot be made; the latter is logged.
  bool Prepare();
  // Whether a slot holds requests and replies with so many bytes of names and data.
  bool Fits(size_t payload_bytes) const;
  // After Prepare: the size of the largest request.
  std::optional<size_t> payload_bytes() const;
  // Registers the rings. Call it when INIT was answered.
  void Start(int device);
  // If the reply belongs to a request of the rings, takes it and returns its size.
  std::optional<ssize_t> Reply(std::span<const iovec> parts);
  // Whether requests arrive through the rings.
  bool InUse() const;
  // Returns when no thread of the rings answers a request. Call it after the connection has ended.
  void Stop();
  // Frees the rings, which keep /dev/fuse open. Call it after Stop, when no reply can follow.
  void Release();

 private:
  const RingTransportOptions options_;
  std::unique_ptr<RingServer> server_;
  std::atomic<bool> started_ = false;
};

}  // namespace siltfs::fuse
