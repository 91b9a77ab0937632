#include "tools/exporter/open_connections.h"

#include <memory>
#include <optional>
#include <vector>

#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

struct Server {
  std::vector<int> ended;
  OpenConnections connections{3, [this](int descriptor) { ended.push_back(descriptor); }};
  const char keys[8] = {};

  void Add(int number) { connections.Add(&keys[number], number); }
};

TEST_CASE("one connection too many ends the oldest one, once") {
  Server server;
  for (int i = 0; i < 3; ++i) server.Add(i);
  CHECK(server.ended.empty());
  server.Add(3);
  CHECK(server.ended == std::vector<int>{0});
  server.Add(4);  // the first one is still there, but it counts no more
  CHECK(server.ended == std::vector<int>{0, 1});
  server.connections.Remove(&server.keys[0]);
  server.connections.Remove(&server.keys[2]);
  server.Add(5);
  CHECK(server.ended == std::vector<int>{0, 1});
}

TEST_CASE("a connection stays while its answer is made, and is a new one after it") {
  Server server;
  std::optional<OpenConnections::Answering> answering;
  server.Add(0);
  answering.emplace(server.connections, &server.keys[0]);
  for (int i = 1; i < 4; ++i) server.Add(i);
  CHECK(server.ended == std::vector<int>{1});
  answering.reset();
  server.Add(4);
  CHECK(server.ended == std::vector<int>{1, 2});
  server.Add(5);
  CHECK(server.ended == std::vector<int>{1, 2, 3});
}

TEST_CASE("if all connections wait for answers, none is ended") {
  Server server;
  std::vector<std::unique_ptr<OpenConnections::Answering>> answering;
  for (int i = 0; i < 5; ++i) {
    server.Add(i);
    answering.push_back(
        std::make_unique<OpenConnections::Answering>(server.connections, &server.keys[i]));
  }
  CHECK(server.ended.empty());
}

}  // namespace
}  // namespace siltfs::testing
