#include "daemon/http/listener.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <boost/asio/co_spawn.hpp>
#include <fstream>

#include "daemon/http/server_api.h"
#include "daemon/testing/test_client.h"
#include "testing/temp_dir.h"

namespace kvkeep::daemon {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ListenerTest : public ::testing::Test {
 protected:
  Result<std::unique_ptr<Listener>> open(const std::string& host, uint16_t port = 0) {
    return Listener::open(io_.get_executor(), host, port);
  }
  std::string socket_path() const { return (dir_.path() / "s.sock").string(); }
  static uint16_t port_of(const Listener& listener) {
    const std::string url = listener.url();
    return static_cast<uint16_t>(std::stoi(url.substr(url.rfind(':') + 1)));
  }

  testing::TempDir dir_;
  net::io_context io_;
};

TEST_F(ListenerTest, GivesItsConnectionsAwayUntilItIsClosed) {
  const auto listener = *open("127.0.0.1");
  EXPECT_THAT(listener->url(), StartsWith("http://127.0.0.1:"));
  std::vector<Socket> taken;
  bool ended = false;
  net::co_spawn(io_, listener->accept([&](Socket socket) { taken.push_back(std::move(socket)); }),
                [&](const std::exception_ptr&) { ended = true; });
  const ServerAddress address{"127.0.0.1", port_of(*listener), "", ""};
  for (size_t n = 1; n <= 2; ++n) {
    EXPECT_TRUE(run_to_end(io_, connect_to(address)).ok());
    EXPECT_TRUE(run_until(io_, [&] { return taken.size() == n; }));
  }
  listener->close();
  EXPECT_TRUE(run_until(io_, [&] { return ended; }));
  EXPECT_FALSE(run_to_end(io_, connect_to(address)).ok());
}

TEST_F(ListenerTest, APortInUseIsAnErrorWithTheAddress) {
  const auto first = *open("127.0.0.1");
  const auto second = open("127.0.0.1", port_of(*first));
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), Code::kUnavailable);
  EXPECT_THAT(second.status().message(), StartsWith("127.0.0.1:"));
  EXPECT_THAT(second.status().message(), HasSubstr("in use"));
}

TEST_F(ListenerTest, ANameThatIsNobodysIsAnError) {
  EXPECT_THAT(open("no.such.host.invalid").status().message(), StartsWith("no.such.host.invalid"));
}

TEST_F(ListenerTest, AUnixSocketIsForItsOwnerAndGoesWithItsListener) {
  {
    const auto listener = *open(socket_path());
    EXPECT_EQ(listener->url(), "unix:" + socket_path());
    struct stat info {};
    ASSERT_EQ(::lstat(socket_path().c_str(), &info), 0);
    EXPECT_TRUE(S_ISSOCK(info.st_mode));
    EXPECT_EQ(info.st_mode & 0777, 0600u);
    EXPECT_THAT(open("unix:" + socket_path()).status().message(), HasSubstr("in use"));
  }
  EXPECT_FALSE(std::filesystem::exists(socket_path()));
}

TEST_F(ListenerTest, ASocketThatNobodyAnswersOnIsReplaced) {
  {
    net::local::stream_protocol::acceptor left(io_);
    left.open(net::local::stream_protocol());
    left.bind(net::local::stream_protocol::endpoint(socket_path()));
  }
  EXPECT_TRUE(std::filesystem::exists(socket_path()));
  EXPECT_TRUE(open(socket_path()).ok());
}

TEST_F(ListenerTest, AFileOfAnotherKindIsNotReplaced) {
  std::ofstream(socket_path()) << "precious";
  const auto listener = open(socket_path());
  ASSERT_FALSE(listener.ok());
  EXPECT_THAT(listener.status().message(), StartsWith(socket_path()));
  std::string content;
  std::ifstream(socket_path()) >> content;
  EXPECT_EQ(content, "precious");
}

TEST_F(ListenerTest, AFreePortCanBeTaken) {
  const auto port = free_port(io_.get_executor());
  ASSERT_TRUE(port.ok());
  EXPECT_THAT((*open("127.0.0.1", *port))->url(), EndsWith(":" + std::to_string(*port)));
}

}  // namespace
}  // namespace kvkeep::daemon
