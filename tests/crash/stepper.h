// Runs the steps of a sequence on a FileSystem.
//
// Thread-safety: one thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "fs/interface/file_system.h"
#include "tests/crash/operation.h"

namespace siltfs::testing {

// Takes one thread's steps on one FileSystem, and holds the thread's open files.
class Stepper {
 public:
  // `fs` must outlive this object.
  Stepper(FileSystem& fs, unsigned thread) : fs_(fs), thread_(thread) {}

  // Makes the thread's directory.
  Status Begin();
  // Takes the step and returns the call's answer as text. After the same steps, every FileSystem
  // gives the same answer.
  std::string Step(const Operation& operation);
  // Returns the Status of the last answer.
  const Status& last() const { return last_; }
  // Returns the inodes that the last step may have changed.
  const std::vector<InodeNumber>& touched() const { return touched_; }
  // Returns the inode that the last step made; 0 if none.
  InodeNumber made() const { return made_; }
  void ReleaseAll();

 private:
  std::string Answer(Status status);
  std::string Answer(const Result<Attributes>& result);
  std::string AnswerMade(const Result<Attributes>& result);
  std::string StepOnSlot(const Operation& operation);
  std::string CopyRange(const Operation& operation);
  std::string StepOnName(const Operation& operation, InodeNumber directory, InodeNumber other);
  std::string OpenInto(uint8_t slot, InodeNumber inode, bool truncate);
  Result<InodeNumber> Find(const std::string& directory, const std::string& name);
  void Close(uint8_t slot);

  FileSystem& fs_;
  const unsigned thread_;
  std::array<InodeNumber, kSlots> slots_{};
  std::vector<InodeNumber> touched_;
  InodeNumber made_ = 0;
  Status last_;
};

}  // namespace siltfs::testing
