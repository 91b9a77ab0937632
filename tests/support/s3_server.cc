#include "tests/support/s3_server.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/catch.h"

extern char** environ;  // NOLINT: POSIX declares it in no header

namespace siltfs::testing {

S3Server::S3Server(const std::vector<std::string>& arguments) {
  int input[2];
  int output[2];
  REQUIRE(pipe2(input, O_CLOEXEC) == 0);
  REQUIRE(pipe2(output, O_CLOEXEC) == 0);
  std::vector<std::string> words = {"python3", SILTFS_S3_SERVER};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, "python3", &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(input[0]);
  close(output[1]);
  input_ = input[1];
  output_ = output[0];
  REQUIRE(error == 0);
  pid_ = pid;
  const std::string ready = ReadLine();
  REQUIRE(ready.starts_with("{\"port\": "));
  port_ = static_cast<uint16_t>(std::stoul(ready.substr(9)));
}

S3Server::~S3Server() { Stop(); }

void S3Server::Stop() {
  if (pid_ < 0) return;
  close(input_);  // the server ends at the end of its input
  close(output_);
  waitpid(static_cast<pid_t>(pid_), nullptr, 0);
  pid_ = -1;
}

std::string S3Server::Control(const std::string& command) {
  const std::string line = command + "\n";
  REQUIRE(write(input_, line.data(), line.size()) == static_cast<ssize_t>(line.size()));
  return ReadLine();
}

size_t S3Server::CountRequests(const std::string& part) {
  const std::string log = Control(R"({"log": true})");
  size_t count = 0;
  for (size_t at = log.find(part); at != std::string::npos; at = log.find(part, at + 1)) ++count;
  return count;
}

std::string S3Server::ReadLine() {
  std::string line;
  char c = 0;
  while (read(output_, &c, 1) == 1 && c != '\n') line += c;
  REQUIRE(c == '\n');
  return line;
}

}  // namespace siltfs::testing
