"""What may stand in the address of a database, and what never leaves it."""

from __future__ import annotations

import pytest

from millstream.connectors.postgres.client.address import BadAddress, read_address
from millstream.spec.secrets.secret import Secret, SecretUrl

CANARY = "S3CR3T-canary"


def test_an_address_is_taken_apart() -> None:
    address = read_address(SecretUrl("postgresql://ann:p%40ss@db.example:6543/shop?sslmode=require"))

    assert (address.host, address.port, address.database, address.user) == ("db.example", 6543, "shop", "ann")
    assert address.password == Secret("p@ss")
    assert address.arguments()["sslmode"] == "require"


def test_user_and_password_given_apart_count_over_the_url() -> None:
    address = read_address(SecretUrl("postgresql://ann:old@localhost/shop"), "bob", Secret("other"))

    assert address.user == "bob"
    assert address.arguments()["password"] == "other"


def test_off_this_machine_the_certificate_is_verified() -> None:
    assert read_address(SecretUrl("postgresql://db.example/shop")).arguments()["sslmode"] == "verify-full"
    assert "sslmode" not in read_address(SecretUrl("postgresql://127.0.0.1/shop")).arguments()


@pytest.mark.parametrize(
    "url",
    [
        f"jdbc:postgresql://ann:{CANARY}@h/shop",
        f"mysql://ann:{CANARY}@h/shop",
        f"postgresql://ann:{CANARY}@h",
        f"postgresql://ann:{CANARY}@/shop",
        f"postgresql://ann:{CANARY}@a,b/shop",
        f"postgresql://ann:{CANARY}@%2Ftmp/shop",
        f"postgresql://ann:{CANARY}@h:none/shop",
        f"postgresql://ann:{CANARY}@h/shop?service=other",
        f"postgresql://ann:{CANARY}@h/shop?options=-c%20x",
        f"postgresql://ann:{CANARY}@h/shop?host=/tmp",
        f"postgresql://ann:{CANARY}@h/shop?passfile=/etc/passwd",
        f"postgresql://ann:{CANARY}@h/shop?socketFactory=x.y.Z",
        f"postgresql://ann:{CANARY}@h/shop%0Ahost=evil",
        f"{CANARY}",
    ],
)
def test_what_leads_elsewhere_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(BadAddress) as error:
        read_address(SecretUrl(url))

    assert error.value.fix
    assert CANARY not in error.value.what + error.value.fix


def test_an_address_shows_no_password() -> None:
    address = read_address(SecretUrl(f"postgresql://ann:{CANARY}@h/shop"))

    assert CANARY not in f"{address} {address.label} {address!r}"
