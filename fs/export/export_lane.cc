#include "fs/export/export_lane.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "fs/transfer/content_record.h"
#include "fs/transfer/entry_record.h"
#include "store/base/coding.h"

namespace siltfs {

using transfer::Answer;
using transfer::Request;
using transfer::RequestType;

namespace {

constexpr uint32_t kTypeMask = 0170000;
constexpr uint32_t kSymlink = 0120000;
// So many names are listed at a time.
constexpr size_t kNamesAtOnce = 1024;

}  // namespace

Answer ExportLane::Handle(const Request& request, MutableByteView slot) {
  Result<Answer> answer = stopped_() ? Status(StatusCode::kAborted, "the store is being closed")
                                     : Dispatch(request, slot);
  return answer.ok() ? *std::move(answer) : transfer::FailureAnswer(answer.status());
}

Result<Answer> ExportLane::Dispatch(const Request& request, MutableByteView slot) {
  switch (request.type) {
    case RequestType::kReadEntries:
      return ReadEntries(request.number, request.second, slot);
    case RequestType::kReadSelf:
      return ReadSelf(request.number, slot);
    case RequestType::kLocate:
      return Locate(request, slot);
    case RequestType::kReadChunks:
      return ReadChunks(request, slot);
    case RequestType::kReadFile:
      return ReadFile(request.number, request.second, slot);
    default:
      return Status(StatusCode::kInvalidArgument, "the request is not understood");
  }
}

Result<std::string> ExportLane::RecordOf(InodeNumber inode, std::string_view name) const {
  SILTFS_ASSIGN_OR_RETURN(const Attributes attributes, file_system_.GetAttributes(inode));
  transfer::EntryRecord record;
  record.number = inode;
  record.name = name;
  record.mode = attributes.mode;
  record.uid = attributes.uid;
  record.gid = attributes.gid;
  record.device = attributes.device;
  record.size = attributes.size;
  record.atime = attributes.atime;
  record.mtime = attributes.mtime;
  record.parent = attributes.links;
  if ((attributes.mode & kTypeMask) == kSymlink) {
    SILTFS_ASSIGN_OR_RETURN(record.target, file_system_.ReadLink(inode));
  }
  SILTFS_ASSIGN_OR_RETURN(const auto names, file_system_.ListXattrs(inode));
  for (const std::string& xattr : names) {
    auto value = file_system_.GetXattr(inode, xattr);
    if (value.status().Is(StatusCode::kNoAttribute)) continue;  // removed meanwhile
    SILTFS_RETURN_IF_ERROR(value.status());
    record.xattrs.push_back({xattr, *std::move(value)});
  }
  return transfer::EncodeRecord(record);
}

Result<Answer> ExportLane::ReadEntries(InodeNumber directory, uint64_t cookie,
                                       MutableByteView slot) {
  SILTFS_RETURN_IF_ERROR(rights_.CheckReach(directory));
  SILTFS_RETURN_IF_ERROR(rights_.CheckList(directory));
  struct Listed {
    std::string name;
    InodeNumber inode;
    uint64_t cookie;
  };
  std::vector<Listed> names;
  SILTFS_RETURN_IF_ERROR(
      file_system_.ReadDirectory(directory, cookie, [&names](const DirectoryRecord& record) {
        if (record.name == "." || record.name == "..") return true;
        names.push_back({std::string(record.name), record.inode, record.cookie});
        return names.size() < kNamesAtOnce;
      }));
  Answer answer;
  bool all = true;
  for (const Listed& listed : names) {
    const auto record = RecordOf(listed.inode, listed.name);
    if (record.status().Is(StatusCode::kStale)) {  // removed meanwhile
      answer.second = listed.cookie;
      continue;
    }
    if (record.status().Is(StatusCode::kAborted)) return record.status();
    if (!record.ok() || record->size() > slot.size()) {  // the other entries can be exported
      answer.flags = transfer::kIncomplete;
    } else if (record->size() > slot.size() - answer.bytes) {
      all = false;
      break;
    } else {
      std::memcpy(slot.data() + answer.bytes, record->data(), record->size());
      answer.bytes += static_cast<uint32_t>(record->size());
      ++answer.count;
    }
    answer.second = listed.cookie;
  }
  if (all && names.size() < kNamesAtOnce) answer.second = 0;
  return answer;
}

Result<Answer> ExportLane::ReadSelf(InodeNumber inode, MutableByteView slot) {
  SILTFS_RETURN_IF_ERROR(rights_.CheckReach(inode));
  SILTFS_ASSIGN_OR_RETURN(const std::string record, RecordOf(inode, "."));
  if (record.size() > slot.size())
    return Status(StatusCode::kUnsupported, "its extended attributes are too large");
  std::memcpy(slot.data(), record.data(), record.size());
  return Answer{.bytes = static_cast<uint32_t>(record.size()), .count = 1};
}

Result<Answer> ExportLane::Locate(const Request& request, MutableByteView slot) {
  const Bytes copy(slot.begin(), slot.begin() + request.bytes);
  if (copy.size() != request.count * sizeof(uint64_t))
    return Status(StatusCode::kInvalidArgument, "the request is not understood");
  Decoder in(copy);
  Encoder out;
  Answer answer;
  uint64_t offset = request.second;
  const auto room = [&] { return out.size() + transfer::kPieceBytes <= slot.size(); };
  for (uint32_t file = 0; file < request.count && room(); ++file) {
    const InodeNumber inode = in.U64();
    bool complete = true;
    Status visited = rights_.CheckRead(inode);
    if (visited.ok()) {
      visited = file_system_.contents().Visit(inode, offset, [&](const ContentPiece& piece) {
        if (!room()) {
          complete = false;
          return false;
        }
        transfer::EncodePiece({.file = file, .piece = piece}, out);
        ++answer.count;
        offset = piece.offset + piece.length;
        return true;
      });
    }
    if (!visited.ok()) {
      if (!room()) break;
      transfer::EncodePiece({.file = file, .code = visited.code(), .piece = {}}, out);
      ++answer.count;
    }
    if (!complete) break;
    offset = 0;
    ++answer.number;
  }
  answer.second = offset;
  answer.bytes = static_cast<uint32_t>(out.size());
  const auto encoded = out.view();
  std::copy(encoded.begin(), encoded.end(), slot.begin());
  return answer;
}

Result<Answer> ExportLane::ReadChunks(const Request& request, MutableByteView slot) {
  const Bytes copy(slot.begin(), slot.begin() + request.bytes);
  SILTFS_ASSIGN_OR_RETURN(const auto places, transfer::DecodePlaces(copy, request.count));
  Answer answer;
  for (const ChunkPlace& place : places) {
    if (place.length > slot.size() - answer.bytes) break;
    const Status read = reader_->Read(place, slot.subspan(answer.bytes, place.length));
    if (!read.ok() && answer.count == 0) return read;
    if (!read.ok()) break;  // the next request begins with this chunk, and gets the error
    answer.bytes += place.length;
    ++answer.count;
  }
  if (answer.count == 0) return Status(StatusCode::kInvalidArgument, "the chunk is too long");
  return answer;
}

Result<Answer> ExportLane::ReadFile(InodeNumber file, uint64_t offset, MutableByteView slot) {
  SILTFS_RETURN_IF_ERROR(rights_.CheckRead(file));
  SILTFS_ASSIGN_OR_RETURN(const size_t got, file_system_.Read(file, offset, slot));
  return Answer{.bytes = static_cast<uint32_t>(got)};
}

}  // namespace siltfs
