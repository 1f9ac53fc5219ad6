# Databricks notebook source
class Harbour:
    def __init__(self):
        self.folder = spark.sql("DESCRIBE EXTERNAL LOCATION `harbour`").select("url").collect()[0][0]
