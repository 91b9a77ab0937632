// The messages of `siltfs import` and `siltfs export`, and the memory through which data pass.
//
// A transfer begins as any command of the control socket: one line of JSON, which names the
// command, and one line back (fs/control/protocol.h), which has the version of this protocol. Then
// the client sends messages of kMainBytes bytes over the same connection:
//
//   'L'  a *lane*; two descriptors come with it: one end of a pair of sockets (PacketSocket), and
//        shared memory of kLaneBytes bytes, sealed in size (SharedMemory). At most kMaxLanes.
//   'A'  the client is alive. It sends this every kAliveInterval; a client that is silent for
//        kAliveLimit is disconnected.
//   'E'  the end: the daemon answers with a line of JSON (the result or a failure), and closes
//
// If the daemon must end the transfer, it sends that line at any time. Bytes 1 to 7 are 0.
//
// On a lane the client sends requests, each in one packet. The daemon answers them in order, each
// in one packet. The shared memory consists of kSlots *slots* of kSlotBytes bytes. A request names
// a slot and the number of bytes that it has put there. Until it has the answer, the client does
// not touch the slot. A client that does so anyway can only spoil its own data: the daemon copies
// the bytes before it looks at them.
//
// Requests and answers are encoded field by field, little-endian (the order of the fields below).
// Decoding accepts any bytes. Thread-safety: as for plain values.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "store/base/bytes.h"
#include "store/base/result.h"

namespace siltfs::transfer {

inline constexpr uint32_t kVersion = 1;

inline constexpr size_t kMainBytes = 8;
inline constexpr char kLaneMessage = 'L';
inline constexpr char kAliveMessage = 'A';
inline constexpr char kEndMessage = 'E';
inline constexpr std::chrono::seconds kAliveInterval{10};
inline constexpr std::chrono::seconds kAliveLimit{60};

inline constexpr size_t kMaxLanes = 4;
inline constexpr size_t kSlots = 3;
inline constexpr size_t kSlotBytes = 512u << 10;
inline constexpr size_t kLaneBytes = kSlots * kSlotBytes;
// Of all lanes of a transfer. The daemon's memory is limited, too.
static_assert(kMaxLanes * kLaneBytes <= 16u << 20);

enum class RequestType : uint8_t {
  // Import. Names and attributes are in entry records (entry_record.h), in the slot.
  kAttach = 1,     // number: a directory, which later requests may use. Answer: number
  kOpenDirectory,  // one record: a directory. number: the reference's parent directory, or 0.
                   // flags: kCreate. Answer: number: the directory, 0 if there is none; second: the
                   // directory of this name in the reference, or 0; flags: kExisted
  kPut,            // `count` records with data, or links, or directories to finish.
                   // flags: kReplaceDirectories. Answer: `count` outcomes in the slot
  kOffer,          // `count` records without data. number: the reference's directory, or 0. flags:
                   // kNew if the entries' directory was made by this import. Answer: as for kPut
  kBeginFile,      // a large file begins; number: its directory. One at a time on a lane
  kWriteFile,      // the slot has data for the offset `number`
  kFinishFile,     // one record, without data. Answer: one outcome
  kList,    // number: a directory, second: the cookie to continue from, or 0. Answer: `count`
            // names in the slot; second: the next cookie, 0 at the end
  kRemove,  // one record: the name to remove, with all that is below it. Answer: number:
            // the number of removed entries

  // Export. Pieces and places are in content_record.h.
  kReadEntries,  // number: a directory, second: as for kList. Answer: `count` records with
                 // attributes and inode numbers in the slot (parent: the number of links); second:
                 // the next cookie, 0 at the end; flags: kIncomplete if an entry is too large
                 // or cannot be read
  kReadSelf,     // number: a directory. Answer: its record
  kLocate,       // `count` inode numbers of files; second: the offset from which on the first file
                 // is wanted. Answer: `count` pieces; number: how many of the files are complete;
                 // second: the offset at which the next file continues
  kReadChunks,   // `count` places. Answer: the bytes of the first `count` of them, which fit in the
                 // slot, one behind the other. If the first one cannot be read, the request fails
  kReadFile,     // number: a file, second: an offset. Answer: `bytes` of it, 0 at its end
};

inline constexpr uint8_t kCreate = 1;
inline constexpr uint8_t kReplaceDirectories = 2;
inline constexpr uint8_t kExisted = 4;
inline constexpr uint8_t kNew = 8;
inline constexpr uint8_t kIncomplete = 16;

struct Request {
  RequestType type = RequestType::kAttach;
  uint8_t flags = 0;
  uint8_t slot = 0;
  uint32_t bytes = 0;  // in the slot
  uint32_t count = 0;
  uint64_t number = 0;
  uint64_t second = 0;
};

struct Answer {
  StatusCode code = StatusCode::kOk;  // of the request as a whole
  uint8_t flags = 0;
  uint32_t bytes = 0;  // in the slot
  uint32_t count = 0;
  uint64_t number = 0;
  uint64_t second = 0;
  std::string cause = {};  // at most kMaxCauseBytes
};

inline constexpr size_t kRequestBytes = 32;
inline constexpr size_t kMaxCauseBytes = 1024;
inline constexpr size_t kMaxAnswerBytes = 32 + kMaxCauseBytes;

Bytes EncodeRequest(const Request& request);
// kInvalidArgument if the bytes are no request, or a request for more than a slot.
Result<Request> DecodeRequest(ByteView packet);
Bytes EncodeAnswer(const Answer& answer);
Result<Answer> DecodeAnswer(ByteView packet);

// The failure of a request as an answer, and back.
Answer FailureAnswer(const Status& status);
Status StatusOfAnswer(const Answer& answer);

// Converts a number in a message; kIoError for an unknown one.
StatusCode CodeOfNumber(uint8_t number);

}  // namespace siltfs::transfer
