// Makes the requests of a client of a transfer from a fuzzer's input.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "fs/transfer/content_record.h"
#include "fs/transfer/entry_record.h"
#include "fs/transfer/lane_message.h"
#include "store/base/coding.h"
#include "tests/fuzz/fuzz_input.h"

namespace siltfs::testing {

// Most of the requests are so well formed that the daemon acts on them.
class FuzzedClient {
 public:
  FuzzedClient(FuzzInput& input, bool import) : input_(input), import_(import) {
    for (InodeNumber inode = 0; inode < 10; ++inode) inodes_.push_back(inode);
  }

  transfer::Request Next(MutableByteView slot) {
    transfer::Request request;
    request.type = Type();
    request.flags = static_cast<uint8_t>(input_.Number(1));
    request.number = Inode();
    request.second = Number();
    const std::string bytes = Payload(request);
    std::copy(bytes.begin(), bytes.end(), slot.begin());
    request.bytes = static_cast<uint32_t>(bytes.size());
    return request;
  }
  // Later requests may use this inode.
  void Learn(InodeNumber inode) { inodes_.push_back(inode); }

 private:
  // Mostly a type that the lane answers.
  transfer::RequestType Type() {
    constexpr auto kAttach = static_cast<uint64_t>(transfer::RequestType::kAttach);
    constexpr auto kFirstOfExport = static_cast<uint64_t>(transfer::RequestType::kReadEntries);
    constexpr auto kLast = static_cast<uint64_t>(transfer::RequestType::kReadFile);
    const uint64_t which = input_.Number(1);
    if (which >= 250) return static_cast<transfer::RequestType>(kAttach + input_.Number(1) % kLast);
    return static_cast<transfer::RequestType>(import_ ? kAttach + which % (kFirstOfExport - kAttach)
                                                      : kFirstOfExport +
                                                            which % (kLast + 1 - kFirstOfExport));
  }
  InodeNumber Inode() {
    const uint64_t which = input_.Number(1);
    return which < 250 ? inodes_[which % inodes_.size()] : input_.Number(8);
  }
  uint64_t Number() {
    const uint64_t width = input_.Number(1) % 16;
    return width > 8 ? 0 : input_.Number(width);
  }
  std::string Text() { return std::string(AsText(input_.Take(input_.Number(1) % 32))); }
  std::string Name() {
    static const std::array<std::string, 12> names = {
        "d",   "file", "open", "inner", "link", "fifo",
        "new", ".",    "..",   "",      "a/b",  std::string(300, 'n')};
    return names[input_.Number(1) % names.size()];
  }
  std::string XattrName() {
    static const std::array<std::string, 9> names = {"user.a",
                                                     "user.a",
                                                     "trusted.b",
                                                     "siltfs.source",
                                                     "",
                                                     "system.posix_acl_access",
                                                     "system.posix_acl_default",
                                                     "security.capability",
                                                     "nothing"};
    return names[input_.Number(1) % names.size()];
  }
  std::string Record() {
    static constexpr std::array<uint32_t, 10> types = {0100000, 0100000, 0100000, 0040000, 0120000,
                                                       0010000, 0020000, 0060000, 0140000, 0};
    transfer::EntryRecord record;
    record.kind = static_cast<transfer::RecordKind>(input_.Number(1) % 3);
    record.number = Inode();
    record.parent = Inode();
    record.name = Name();
    record.mode = types[input_.Number(1) % types.size()] | (input_.Number(2) & 07777);
    record.uid = static_cast<uint32_t>(Number());
    record.gid = static_cast<uint32_t>(Number());
    record.device = Number();
    record.size = Number();
    record.atime = static_cast<int64_t>(Number());
    record.mtime = static_cast<int64_t>(Number());
    record.target = Text();
    if (input_.Number(1) % 2 == 0) record.source = {Number(), static_cast<int64_t>(Number())};
    for (uint64_t left = input_.Number(1) % 3; left > 0; --left)
      record.xattrs.push_back({XattrName(), Text()});
    std::string data;
    uint64_t end = 0;
    for (uint64_t left = input_.Number(1) % 4; left > 0; --left) {
      const std::string some = Text();
      record.extents.push_back({end + Number(), static_cast<uint32_t>(some.size())});
      end = record.extents.back().offset + some.size();
      data += some;
    }
    if (input_.Number(1) % 4 != 0) record.size = end;  // mostly an image without a contradiction
    return transfer::EncodeRecord(record) + data;
  }
  std::string Payload(transfer::Request& request) {
    const uint64_t kind = input_.Number(1) % 8;
    request.count = static_cast<uint32_t>(1 + kind / 3);
    std::string bytes;
    Encoder out;
    switch (request.type) {
      case transfer::RequestType::kWriteFile:
        return Text() + std::string(1000 * kind, 'w');
      case transfer::RequestType::kLocate:
        for (uint32_t i = 0; i < request.count; ++i) out.U64(Inode());
        return out.Take();
      case transfer::RequestType::kReadChunks: {
        ChunkPlace place;
        const ByteView name = input_.Take(ChunkName::kSize);
        std::copy(name.begin(), name.end(), place.name.bytes.begin());
        place.length = static_cast<uint32_t>(Number());
        place.location.segment = static_cast<uint32_t>(Number());
        place.location.ordinal = Number() & Location::kMaxOrdinal;
        place.location.block_offset = Number() & Location::kMaxBlockOffset;
        for (uint32_t i = 0; i < request.count; ++i) transfer::EncodePlace(place, out);
        return out.Take();
      }
      default:
        if (kind == 7) {
          request.count = static_cast<uint32_t>(Number());
          return Text();
        }
        if (request.type != transfer::RequestType::kPut &&
            request.type != transfer::RequestType::kOffer)
          request.count = 1;
        for (uint32_t i = 0; i < request.count; ++i) bytes += Record();
        return bytes;
    }
  }

  FuzzInput& input_;
  const bool import_;
  std::vector<InodeNumber> inodes_;
};

}  // namespace siltfs::testing
