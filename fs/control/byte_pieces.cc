#include "fs/control/byte_pieces.h"

#include <algorithm>
#include <array>
#include <utility>

#include "store/base/coding.h"

namespace siltfs {
namespace {

constexpr uint32_t kLast = 0xffffffff;

}  // namespace

Status BeginPieces(LocalStream& stream) { return stream.SetTimeout(kPieceInterval); }

Result<std::optional<std::string>> ReadLinePatiently(LocalStream& stream, size_t limit,
                                                     const std::function<Status()>& check) {
  while (true) {
    auto line = stream.ReadLine(limit);
    if (!line.status().Is(StatusCode::kInterrupted)) return line;
    SILTFS_RETURN_IF_ERROR(check());
  }
}

Status PieceSink::Write(ByteView bytes) {
  while (!bytes.empty()) {
    const ByteView part = bytes.first(std::min(bytes.size(), kMaxPieceBytes));
    Encoder piece;
    piece.U32(static_cast<uint32_t>(part.size())).Raw(part);
    SILTFS_RETURN_IF_ERROR(Send(piece.view()));
    bytes = bytes.subspan(part.size());
  }
  return Status::Ok();
}

Status PieceSink::End() { return SendLength(0); }

Status PieceSink::EndAll() { return SendLength(kLast); }

Status PieceSink::SendLength(uint32_t length) {
  Encoder piece;
  piece.U32(length);
  return Send(piece.view());
}

Status PieceSink::Send(ByteView piece) {
  while (!piece.empty()) {
    const auto sent = stream_.WriteSome(piece);
    if (sent.ok()) {
      piece = piece.subspan(*sent);
      intact_ = piece.empty();
      continue;
    }
    if (!sent.status().Is(StatusCode::kInterrupted)) return sent.status();
    SILTFS_RETURN_IF_ERROR(check_());
  }
  return Status::Ok();
}

Result<size_t> PieceSource::Read(MutableByteView out) {
  if (rest_ == 0 && state_ == State::kMore) SILTFS_RETURN_IF_ERROR(NextPiece());
  if (state_ != State::kMore) return size_t{0};
  SILTFS_ASSIGN_OR_RETURN(const size_t got, ReceiveSome(out.first(std::min(out.size(), rest_))));
  rest_ -= got;
  return got;
}

Status PieceSource::SkipToLast() {
  std::array<uint8_t, 4096> skipped;
  while (state_ != State::kLast) {
    if (rest_ == 0) SILTFS_RETURN_IF_ERROR(NextPiece());
    if (rest_ == 0) continue;
    const auto out = MutableByteView(skipped).first(std::min(skipped.size(), rest_));
    SILTFS_ASSIGN_OR_RETURN(const size_t got, ReceiveSome(out));
    rest_ -= got;
  }
  return Status::Ok();
}

Result<size_t> PieceSource::ReceiveSome(MutableByteView out) {
  const auto begin = std::chrono::steady_clock::now();
  while (true) {
    auto got = stream_.ReadSome(out);
    if (got.ok() && *got == 0) {
      SILTFS_RETURN_IF_ERROR(check_());  // knows better why it has ended
      return Status(StatusCode::kInterrupted, "the connection has ended too early");
    }
    if (!got.status().Is(StatusCode::kInterrupted)) return got;
    SILTFS_RETURN_IF_ERROR(check_());
    if (patience_ && std::chrono::steady_clock::now() - begin > *patience_)
      return Status(StatusCode::kInterrupted, "the peer has sent nothing for too long");
  }
}

Status PieceSource::NextPiece() {
  std::array<uint8_t, 4> bytes;
  for (size_t have = 0; have < bytes.size();) {
    SILTFS_ASSIGN_OR_RETURN(const size_t got, ReceiveSome(MutableByteView(bytes).subspan(have)));
    have += got;
  }
  const uint32_t length = Decoder(bytes).U32();
  const bool ended = state_ == State::kEnded;
  if (length == kLast) {
    state_ = State::kLast;
  } else if (length > kMaxPieceBytes || ended) {
    return {StatusCode::kInvalidArgument, "bytes of a stream are malformed"};
  } else if (length == 0) {
    state_ = State::kEnded;
  }
  rest_ = state_ == State::kMore ? length : 0;
  return Status::Ok();
}

}  // namespace siltfs
