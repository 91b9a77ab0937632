// Two sequences of bytes, one in each direction, over one connection of the control socket.
//
// A sequence is sent in *pieces*: a length of 4 bytes, little-endian, and then 1 to kMaxPieceBytes
// bytes. The length 0 ends the sequence. The length kLast ends it, too, and is the last one: the
// sender has no more pieces, and wants none. Then the connection may be used for other messages.
//
// While a call waits for the peer, it calls `check` at intervals (kPieceInterval), and returns its
// failure. The peer may be as slow as it likes, unless the reader has set its patience.
//
// Thread-safety: one thread at a time for each object; a sink and a source of one connection may be
// used by two threads. Ownership: borrow the connection. Errors: those of the connection;
// kInvalidArgument for bytes that are no piece.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "store/base/byte_stream.h"
#include "store/env/local_socket.h"

namespace siltfs {

inline constexpr size_t kMaxPieceBytes = 64u << 10;
inline constexpr std::chrono::milliseconds kPieceInterval{100};

// Sets the interval of the connection's waits, which both classes need.
Status BeginPieces(LocalStream& stream);
// The next line; nullopt if the connection has ended.
Result<std::optional<std::string>> ReadLinePatiently(LocalStream& stream, size_t limit,
                                                     const std::function<Status()>& check);

class PieceSink final : public ByteSink {
 public:
  PieceSink(LocalStream& stream, std::function<Status()> check)
      : stream_(stream), check_(std::move(check)) {}

  Status Write(ByteView bytes) override;
  Status End();
  Status EndAll();
  // False if a call failed within a piece. Then the peer cannot understand what follows.
  bool intact() const { return intact_; }

 private:
  Status SendLength(uint32_t length);
  Status Send(ByteView piece);

  LocalStream& stream_;
  const std::function<Status()> check_;
  bool intact_ = true;
};

class PieceSource final : public ByteSource {
 public:
  PieceSource(LocalStream& stream, std::function<Status()> check)
      : stream_(stream), check_(std::move(check)) {}

  // kInterrupted if the connection ends before the sequence does.
  Result<size_t> Read(MutableByteView out) override;
  void SetPatience(std::optional<std::chrono::nanoseconds> patience) override {
    patience_ = patience;
  }
  // Discards all pieces up to the last one.
  Status SkipToLast();

 private:
  enum class State : uint8_t { kMore, kEnded, kLast };

  Result<size_t> ReceiveSome(MutableByteView out);
  Status NextPiece();

  LocalStream& stream_;
  const std::function<Status()> check_;
  State state_ = State::kMore;
  size_t rest_ = 0;  // of the present piece
  std::optional<std::chrono::nanoseconds> patience_;
};

}  // namespace siltfs
