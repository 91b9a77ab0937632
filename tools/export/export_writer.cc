#include "tools/export/export_writer.h"

#include <algorithm>
#include <utility>

#include "fs/transfer/content_record.h"

namespace siltfs {

using transfer::Answer;
using transfer::RequestType;

namespace {

bool SameChunk(const ExportPart& a, const ExportPart& b) {
  return a.piece.chunk.name == b.piece.chunk.name && a.piece.length == b.piece.length;
}

// Whether the daemon's answer is an error of the whole transfer, not of one file. Errors of the
// target are always those of one file.
bool EndsExport(const Status& status) {
  return status.Is(StatusCode::kAborted) || status.Is(StatusCode::kInvalidArgument);
}

}  // namespace

Status ExportWriter::Run() {
  while (!job_.stopped()) {
    std::vector<ExportPart> slice = job_.TakeSlice();
    if (slice.empty()) break;
    const auto other = std::partition_point(slice.begin(), slice.end(), [](const ExportPart& part) {
      return part.piece.kind == ContentPiece::Kind::kChunk;
    });
    SILTFS_RETURN_IF_ERROR(WriteChunks({slice.begin(), other}));
    for (auto part = other; part != slice.end(); ++part) SILTFS_RETURN_IF_ERROR(WriteFile(*part));
  }
  return Status::Ok();
}

Status ExportWriter::WriteChunks(std::span<ExportPart> parts) {
  while (!parts.empty() && !job_.stopped()) {
    // The next different chunks. Their places and then their bytes must fit in a slot. The places
    // of tiny chunks, which lie between holes, are longer than the chunks.
    Encoder places;
    uint32_t count = 0;
    uint64_t bytes = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (i > 0 && SameChunk(parts[i - 1], parts[i])) continue;
      bytes += parts[i].piece.length;
      const bool full = places.size() + transfer::kPlaceBytes > transfer::kSlotBytes;
      if (count > 0 && (full || bytes > transfer::kSlotBytes)) break;
      transfer::EncodePlace(parts[i].piece.chunk, places);
      ++count;
    }
    const MutableByteView slot = lane_.slot(0);
    std::copy(places.view().begin(), places.view().end(), slot.begin());
    SILTFS_RETURN_IF_ERROR(lane_.Post({.type = RequestType::kReadChunks,
                                       .bytes = static_cast<uint32_t>(places.size()),
                                       .count = count}));
    SILTFS_ASSIGN_OR_RETURN(const Answer answer, lane_.Await());
    const Status read = transfer::StatusOfAnswer(answer);
    if (!read.ok()) {
      if (EndsExport(read)) return read;
      // The first chunk cannot be read. The files that have it are incomplete.
      size_t same = 1;
      while (same < parts.size() && SameChunk(parts[0], parts[same])) ++same;
      for (const ExportPart& part : parts.first(same)) {
        job_.Fail(*part.file, read);
        SILTFS_RETURN_IF_ERROR(Done(part.file));
      }
      parts = parts.subspan(same);
      continue;
    }
    if (answer.count == 0)
      return {StatusCode::kCorruption, "the daemon's answer is not understood"};
    job_.totals().bytes_read += answer.bytes;
    size_t at = 0;
    for (uint32_t i = 0; i < answer.count && !parts.empty(); ++i) {
      const size_t length = parts[0].piece.length;
      if (length > answer.bytes - at)
        return {StatusCode::kCorruption, "the daemon's answer is not understood"};
      size_t same = 1;
      while (same < parts.size() && SameChunk(parts[0], parts[same])) ++same;
      SILTFS_RETURN_IF_ERROR(Write(parts.first(same), ByteView(slot).subspan(at, length)));
      at += length;
      parts = parts.subspan(same);
    }
  }
  return Status::Ok();
}

Status ExportWriter::Write(std::span<ExportPart> same, ByteView bytes) {
  for (const ExportPart& part : same) {
    if (!part.file->failed) {
      const Status written = part.file->target->Write(part.piece.offset, bytes);
      if (!written.ok()) job_.Fail(*part.file, written);
      job_.totals().bytes_new += bytes.size();
    }
    SILTFS_RETURN_IF_ERROR(Done(part.file));
  }
  return Status::Ok();
}

Status ExportWriter::WriteFile(const ExportPart& part) {
  const uint64_t end = part.piece.offset + part.piece.length;
  for (uint64_t at = part.piece.offset; at < end && !job_.stopped();) {
    SILTFS_RETURN_IF_ERROR(
        lane_.Post({.type = RequestType::kReadFile, .number = part.file->inode, .second = at}));
    SILTFS_ASSIGN_OR_RETURN(const Answer answer, lane_.Await());
    Status written = transfer::StatusOfAnswer(answer);
    if (EndsExport(written)) return written;
    if (written.ok() && answer.bytes == 0) break;  // it was truncated meanwhile
    if (written.ok()) written = part.file->target->Write(at, lane_.slot(0).first(answer.bytes));
    if (!written.ok()) {
      job_.Fail(*part.file, written);
      break;
    }
    at += answer.bytes;
    job_.totals().bytes_read += answer.bytes;
    job_.totals().bytes_new += answer.bytes;
  }
  return Done(part.file);
}

Status ExportWriter::Done(const ExportFilePtr& file) {
  if (--file->pending > 0 || file->failed || job_.stopped()) return Status::Ok();
  Status finished = file->target->SetSize(file->attributes.size);
  if (finished.ok() && job_.verify()) SILTFS_RETURN_IF_ERROR(Verify(*file, finished));
  if (finished.ok()) finished = file->target->Place(file->attributes, file->xattrs);
  if (finished.ok()) {
    ++job_.totals().files;
  } else {
    job_.Fail(*file, finished);
  }
  file->target.reset();  // closes it
  return Status::Ok();
}

Status ExportWriter::Verify(const ExportFile& file, Status& verified) {
  if (!namer_) {
    SILTFS_ASSIGN_OR_RETURN(ChunkNamer made, ChunkNamer::Create(ChunkNamer::StoreUuid{}));
    namer_.emplace(std::move(made));
  }
  Bytes bytes;
  for (const auto& [offset, place] : file.chunks) {
    bytes.resize(place.length);
    const auto got = file.target->Read(offset, bytes);
    if (!got.ok()) {
      verified = got.status();
      return Status::Ok();
    }
    if (*got == bytes.size() && namer_->NameOf(bytes) == place.name) continue;
    // A chunk whose SHA-1 collides has another name, so its bytes are compared.
    Encoder encoded;
    transfer::EncodePlace(place, encoded);
    std::copy(encoded.view().begin(), encoded.view().end(), lane_.slot(1).begin());
    SILTFS_RETURN_IF_ERROR(lane_.Post({.type = RequestType::kReadChunks,
                                       .slot = 1,
                                       .bytes = static_cast<uint32_t>(encoded.size()),
                                       .count = 1}));
    SILTFS_ASSIGN_OR_RETURN(const Answer answer, lane_.Await());
    Status read = transfer::StatusOfAnswer(answer);
    if (EndsExport(read)) return read;
    if (read.ok() && !std::ranges::equal(bytes, lane_.slot(1).first(answer.bytes)))
      read = {StatusCode::kIoError, "was not written correctly, its bytes differ when read back"};
    if (!read.ok()) {
      verified = std::move(read);
      return Status::Ok();
    }
  }
  return Status::Ok();
}

}  // namespace siltfs
