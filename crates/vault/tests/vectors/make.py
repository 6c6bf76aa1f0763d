#!/usr/bin/env python3
"""Writes the test vectors of SPEC.md, "vault", from the text of SPEC alone: nothing of the Rust code is used.

Needs the Python package `cryptography` (with OpenSSL 3.2 or later). Ascon-AEAD128 is written out below.
"""

import hashlib
import hmac
import struct
from pathlib import Path

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, AESGCMSIV, AESOCB3, ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

HERE = Path(__file__).parent
FORMAT = 1
SUITES = {1: "aes-256-gcm-siv", 2: "aes-256-gcm", 3: "chacha20-poly1305", 4: "ascon-aead128", 5: "aes-128-ocb3"}
VOLUME_KEY = bytes(range(32))
DATABASE = bytes(range(64, 96))
SALT = bytes(range(160, 176))


def mac(key, *parts):
    return hmac.new(key, b"".join(parts), hashlib.sha256).digest()


def expand(root, info):
    return mac(root, info, b"\x01")


def root():
    return mac(DATABASE, VOLUME_KEY)


def info_head(suite, purpose, epoch, allocation):
    return b"counterfoil/key\0" + struct.pack("<BHBQQ", suite, FORMAT, purpose, epoch, allocation)


def derive(suite, purpose, epoch=0, allocation=0, salt=bytes(16)):
    return expand(root(), info_head(suite, purpose, epoch, allocation) + salt)


def ascon(key, nonce, associated, text):
    """NIST SP 800-232, Ascon-AEAD128."""
    mask = (1 << 64) - 1
    ror = lambda x, n: (x >> n | x << (64 - n)) & mask

    def permute(s, rounds):
        for r in range(12 - rounds, 12):
            s[2] ^= 0xF0 - r * 0x10 + r
            s[0] ^= s[4]
            s[4] ^= s[3]
            s[2] ^= s[1]
            t = [(s[i] ^ mask) & s[(i + 1) % 5] for i in range(5)]
            for i in range(5):
                s[i] ^= t[(i + 1) % 5]
            s[1] ^= s[0]
            s[0] ^= s[4]
            s[3] ^= s[2]
            s[2] ^= mask
            for i, (a, b) in enumerate([(19, 28), (61, 39), (1, 6), (10, 17), (7, 41)]):
                s[i] ^= ror(s[i], a) ^ ror(s[i], b)

    k = struct.unpack("<2Q", key)
    s = [0x00001000808C0001, *k, *struct.unpack("<2Q", nonce)]
    permute(s, 12)
    s[3] ^= k[0]
    s[4] ^= k[1]
    if associated:
        padded = associated + b"\x01"
        padded += bytes(-len(padded) % 16)
        for at in range(0, len(padded), 16):
            a, b = struct.unpack("<2Q", padded[at:at + 16])
            s[0] ^= a
            s[1] ^= b
            permute(s, 8)
    s[4] ^= 1 << 63
    out = b""
    padded = text + b"\x01"
    padded += bytes(-len(padded) % 16)
    for at in range(0, len(padded), 16):
        a, b = struct.unpack("<2Q", padded[at:at + 16])
        s[0] ^= a
        s[1] ^= b
        out += struct.pack("<2Q", s[0], s[1])
        if at + 16 < len(padded):
            permute(s, 8)
    s[2] ^= k[0]
    s[3] ^= k[1]
    permute(s, 12)
    return out[:len(text)] + struct.pack("<2Q", s[3] ^ k[0], s[4] ^ k[1])


def seal(suite, key, number, associated, text):
    """Text and tag."""
    nonce = struct.pack("<Q", number)
    if suite == 4:
        return ascon(key[:16], nonce + bytes(8), associated, text)
    cipher = {1: AESGCMSIV, 2: AESGCM, 3: ChaCha20Poly1305, 5: AESOCB3}[suite]
    return cipher(key[:16] if suite == 5 else key).encrypt(nonce + bytes(4), text, associated)


def associated(kind, position, allocation, epoch):
    return struct.pack("<B3xIQQ", kind, position, allocation, epoch)


def write(name, title, entries):
    lines = [f"# {title}", "# Written by make.py. See SPEC.md, \"vault\"."]
    for entry in entries:
        lines.append("")
        for field, value in entry.items():
            lines.append(f"{field} = {value.hex() if isinstance(value, bytes) else value}")
    (HERE / name).write_text("\n".join(lines) + "\n")


COMMON = {"volume_key": VOLUME_KEY, "database": DATABASE}
TEXT = bytes((i * 7) & 0xFF for i in range(100))


def keys():
    for suite in SUITES:
        for purpose in [1, 3, 16, 17, 18, 19, 20, 21, 24]:
            yield COMMON | {"suite": suite, "purpose": purpose, "epoch": 9, "allocation": 1 << 40, "salt": SALT,
                            "key": derive(suite, purpose, 9, 1 << 40, SALT)}


def pages():
    for suite in SUITES:
        for kind, allocation, position, number in [(1, 5, 0, 0), (3, 1 << 40, 63, 63), (8, 7, 2, 1 << 33)]:
            key = derive(suite, kind, 9, allocation, SALT)
            page = seal(suite, key, number, associated(kind, position, allocation, 9), TEXT)
            yield COMMON | {"suite": suite, "kind": kind, "allocation": allocation, "position": position,
                            "number": number, "epoch": 9, "salt": SALT, "payload": TEXT, "page": page}


def openings():
    for suite in SUITES:
        allocation, position, version = 11, 3, 42
        place = associated(2, position, allocation, version)
        value = mac(derive(suite, 17), place, TEXT)
        key = expand(root(), info_head(suite, 2, version, allocation) + value)
        sealed = seal(suite, key, position, place, TEXT)
        yield COMMON | {"suite": suite, "allocation": allocation, "position": position, "version": version,
                        "payload": TEXT, "page": sealed[:-16] + value + sealed[-16:]}


def aes(key, block):
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    return encryptor.update(block) + encryptor.finalize()


def xor(one, two):
    return bytes(a ^ b for a, b in zip(one, two))


def cells():
    for suite in [1, 5]:
        bytes_of_key = 32 if suite == 1 else 16
        block_key, tweak_key, mac_key = (derive(suite, purpose, 9, 0, SALT) for purpose in (19, 20, 21))
        allocation, position = 1 << 40, 17
        inner = aes(tweak_key[:bytes_of_key], struct.pack("<QI4x", allocation, position))
        tweak = int.from_bytes(aes(tweak_key[:bytes_of_key], xor(inner, struct.pack("<Q8x", 9))), "little")
        stored = b""
        sealed = []
        for slot in range(256):
            if slot in (0, 1, 200, 255):
                mask = tweak.to_bytes(16, "little")
                payload = f"slot {slot}".encode()
                cell = xor(aes(block_key[:bytes_of_key], xor(payload.ljust(16, b"\0"), mask)), mask)
                stored += cell
                sealed.append({"slot": slot, "payload": payload, "cell": cell})
            tweak = (tweak << 1) ^ (0x87 if tweak >> 127 else 0)
            tweak &= (1 << 128) - 1
        tag = mac(mac_key, struct.pack("<QIQ", allocation, position, 9), stored)[:16]
        for cell in sealed:
            yield COMMON | {"suite": suite, "allocation": allocation, "position": position, "epoch": 9,
                            "salt": SALT} | cell | {"cells": stored, "mac": tag}


def code_text(code):
    checksum = int.from_bytes(hashlib.sha256(b"counterfoil/code" + code).digest()[:3], "big") >> 4
    number = int.from_bytes(code, "big") << 20 | checksum
    letters = "".join("0123456789ABCDEFGHJKMNPQRSTVWXYZ"[number >> 5 * i & 31] for i in reversed(range(36)))
    return "-".join(letters[i:i + 6] for i in range(0, 36, 6))


def slot(kind, secret, cost, salt, created, shown=b""):
    head = struct.pack("<B3xIIIQ8x", kind, *cost, created) + salt
    if kind == 1:
        secret = Argon2id(salt=salt, length=32, memory_cost=cost[0], iterations=cost[1], lanes=cost[2]).derive(secret)
    key = expand(mac(salt, secret + shown), b"counterfoil/slot" + struct.pack("<BH", kind, FORMAT) + DATABASE)
    wrapped = AESGCMSIV(key).encrypt(bytes(12), VOLUME_KEY, head + DATABASE)
    return (head + wrapped + shown).ljust(224, b"\0")


def headers():
    key_file, code, passphrase = bytes(range(200, 232)), bytes(range(100, 120)), b"correct horse battery staple"
    kept, shown = bytes(range(50, 82)), bytes(range(96))
    slots = [
        slot(1, passphrase, (65536, 3, 1), bytes(range(0, 32)), 1_700_000_001),
        slot(2, key_file, (0, 0, 0), bytes(range(1, 33)), 1_700_000_002),
        slot(3, code, (0, 0, 0), bytes(range(2, 34)), 1_700_000_003),
        slot(4, kept, (0, 0, 0), bytes(range(3, 35)), 1_700_000_004, shown),
    ]
    for suite in [1, 4]:
        head = struct.pack("<8sHHBB2x32sIIQQQQQ32x", b"\x89CFOIL\r\n", FORMAT, 2048, suite, 2, DATABASE,
                           4096, 64, 2, 16, 1 << 40, 1_700_000_000, 3)
        body = head + b"".join(slots).ljust(8 * 224, b"\0")
        check = mac(derive(suite, 16), body)
        yield COMMON | {"suite": suite, "passphrase": passphrase, "key_file": key_file, "recovery_code": code_text(code),
                        "kept": kept, "shown": shown,
                        "purpose": hashlib.sha256(b"counterfoil/tpm/slot\0" + DATABASE).digest(),
                        "digest": hashlib.sha256(body).digest(), "header": (body + check).ljust(2048, b"\0")}


def codes():
    for code in [bytes(20), b"\xff" * 20, bytes(range(20))]:
        yield {"code": code, "text": code_text(code)}


def counters():
    key = derive(1, 18)
    slots = b""
    for value, tag, rollbacks in [(7, b"\x07" * 16, 2), (6, b"\x06" * 16, 1)]:
        path = b"/data/plant.db"
        body = struct.pack("<8s32sQ16sQH402sI", b"CFCOUNT1", DATABASE, value, tag, 1_700_000_000 + value, len(path), path,
                           rollbacks)
        slots += body + mac(key, body)
    yield COMMON | {"suite": 1, "value": 7, "tag": b"\x07" * 16, "time": 1_700_000_007, "path": "/data/plant.db",
                    "rollbacks": 2, "file": slots}


write("keys.txt", "Derived keys: HKDF-SHA-256 of the volume key", keys())
write("pages.txt", "Sealed pages: payload and tag; `number` is the nonce", pages())
write("openings.txt", "Opening pages: payload, synthetic value, tag", openings())
write("cells.txt", "Small sealed cells, and the MAC of a page of them (`cells`: the four of the group)", cells())
write("headers.txt", "A copy of the header, and the digest of its slots", headers())
write("codes.txt", "Recovery codes", codes())
write("counters.txt", "A file counter: both slots", counters())
