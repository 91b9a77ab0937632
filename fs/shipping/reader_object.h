// The objects by which readers of a bucket tell its writer what they still need
// (docs/format.md#readers-of-a-bucket). A reader is a mount on another machine that follows the
// writer. The writer deletes no segment that a live reader may need.
//
//   readers/ID     which commit the reader shows, and how long the writer waits for its next sign
//
// Thread-safety: pure functions, and values.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "store/base/bytes.h"
#include "store/base/result.h"

namespace siltfs {

inline constexpr std::string_view kReaderPrefix = "readers/";
inline constexpr size_t kMostReaderBytes = 4096;
// A reader that is silent for this long counts as gone, unless it has asked for another time.
inline constexpr std::chrono::seconds kReaderAge{600};
inline constexpr std::chrono::hours kLongestReaderAge{24};

struct ReaderObject {
  std::array<uint8_t, 16> id{};
  uint64_t beat = 0;  // ascends with each Put, so that no two contents are equal
  // The reader needs the segments of this commit and of later ones. 0: of all commits.
  uint64_t reached = 0;
  std::chrono::nanoseconds age = kReaderAge;
  std::string host;  // for messages
};

std::string ReaderKey(const std::array<uint8_t, 16>& id);
std::string EncodeReader(const ReaderObject& reader);
// kCorruption, and kNeedsNewer for another version.
Result<ReaderObject> DecodeReader(ByteView bytes);

}  // namespace siltfs
